/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that meet (MPI-5.0 sections 11.9, 11.10.5), for test_connected.py; uses mpi.h alone:
 *   connected serve FILE N      opens a port, writes its name to FILE, takes N others one after
 * another connected visit FILE        connects with the port that FILE names connected publish NAME
 * N / connected lookup NAME    the same by a published name connected within            ranks of
 * one job meet over ports and over a socket connected wrong FILE        all that must be refused
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "connected.c:%d: %s\n", __LINE__, #condition);                         \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

static int rank, size;

/* Both sides: every rank sends each of the others its number and much more. */
static void talk(MPI_Comm inter)
{
    enum { N = 50000 };
    int n_remote, me;

    MPI_Comm_remote_size(inter, &n_remote);
    MPI_Comm_rank(inter, &me);
    int *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    MPI_Request *requests = malloc((size_t)n_remote * sizeof *requests);
    for (int i = 0; i < N; i++)
        out[i] = me * 1000 + i;
    for (int r = 0; r < n_remote; r++)
        MPI_Isend(out, r % 2 ? N : 1, MPI_INT, r, 3, inter, &requests[r]);
    for (int r = 0; r < n_remote; r++) {
        MPI_Status status;
        int n;
        MPI_Recv(in, N, MPI_INT, r, 3, inter, &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == (me % 2 ? N : 1));
        for (int i = 0; i < n; i++)
            CHECK(in[i] == r * 1000 + i);
    }
    MPI_Waitall(n_remote, requests, MPI_STATUSES_IGNORE);
    int sum;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == n_remote * (n_remote - 1) / 2);
    free(requests);
    free(in);
    free(out);
}

static void put(const char *file, const char *text)
{
    char fresh[1000];

    snprintf(fresh, sizeof fresh, "%s.new", file);
    FILE *f = fopen(fresh, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && rename(fresh, file) == 0);
}

static void get(const char *file, char *text)
{
    FILE *f;

    while (!(f = fopen(file, "r")))
        usleep(10000);
    CHECK(fgets(text, MPI_MAX_PORT_NAME, f));
    fclose(f);
}

static void serve(const char *file, const char *name, int n)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;

    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        if (file)
            put(file, port);
        else
            MPI_Publish_name(name, MPI_INFO_NULL, port);
    }
    for (int i = 0; i < n; i++) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        talk(inter);
        MPI_Comm_disconnect(&inter);
    }
    if (rank == 0) {
        if (!file)
            MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        MPI_Close_port(port);
        puts("served");
    }
}

static void visit(const char *file, const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int last = size - 1;
    MPI_Comm inter;

    if (rank == last && file)
        get(file, port);
    if (rank == last && name) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS)
            usleep(10000);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_connect(port, MPI_INFO_NULL, last, MPI_COMM_WORLD, &inter);
    talk(inter);
    MPI_Comm_disconnect(&inter);
    if (rank == 0)
        puts("visited");
}

/* ---- one job ---- */

static int socket_with(int peer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), number = getpid();

    if (rank == 0) {
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "motet-join-%d", number);
        CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
        MPI_Send(&number, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
        int one = accept(fd, NULL, NULL);
        close(fd);
        return one;
    }
    MPI_Recv(&number, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "motet-join-%d", number);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static void within(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    MPI_Group group, world;
    int same, fd, other = 1 - rank, there;

    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        MPI_Close_port(port);
    } else {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    }
    talk(inter);
    /* The other process is one of MPI_COMM_WORLD. */
    MPI_Comm_remote_group(inter, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int zero = 0;
    MPI_Group_translate_ranks(group, 1, &zero, world, &there);
    CHECK(there == other);
    MPI_Group_compare(group, world, &same);
    CHECK(same == MPI_UNEQUAL);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_disconnect(&inter);
    fd = socket_with(other);
    MPI_Comm_join(fd, &inter);
    close(fd);
    talk(inter);
    MPI_Comm_disconnect(&inter);
    if (rank == 0)
        puts("met");
}

/* ---- what is refused ---- */

static void refused(int rc, int wanted, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, len;

    MPI_Error_class(rc, &class);
    MPI_Error_string(rc, text, &len);
    printf("%s: %s%s\n", what, class == wanted ? "" : "WRONG CLASS ", text);
}

static void wrong(const char *file)
{
    char port[MPI_MAX_PORT_NAME], own[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    MPI_Comm inter, comm = MPI_COMM_SELF;
    MPI_Info info;

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0.2");
    get(file, port);
    size_t n = strlen(port);
    /* Another job's port is for that job to accept at, publish and close. */
    refused(MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &inter), MPI_ERR_PORT, "accept");
    refused(MPI_Close_port(port), MPI_ERR_PORT, "close");
    /* Guesses. */
    port[n - 1] = port[n - 1] == '0' ? '1' : '0';
    refused(MPI_Comm_connect(port, info, 0, comm, &inter), MPI_ERR_PORT, "guess");
    port[n - 1] = '\0';
    refused(MPI_Comm_connect(port, info, 0, comm, &inter), MPI_ERR_PORT, "short");
    refused(MPI_Comm_connect("motet:elsewhere:1234", info, 0, comm, &inter), MPI_ERR_PORT, "far");
    refused(MPI_Comm_connect("tcp://1.2.3.4", info, 0, comm, &inter), MPI_ERR_PORT, "rubbish");
    memset(found, 'x', sizeof found - 1);
    found[sizeof found - 1] = '\0';
    refused(MPI_Comm_connect(found, info, 0, comm, &inter), MPI_ERR_PORT, "long");
    /* Nobody accepts. */
    MPI_Open_port(MPI_INFO_NULL, own);
    refused(MPI_Comm_connect(own, info, 0, comm, &inter), MPI_ERR_PORT, "timeout");
    MPI_Close_port(own);
    refused(MPI_Comm_connect(own, info, 0, comm, &inter), MPI_ERR_PORT, "closed");
    refused(MPI_Close_port(own), MPI_ERR_PORT, "again");
    refused(MPI_Lookup_name("nobody", MPI_INFO_NULL, found), MPI_ERR_NAME, "lookup");
    refused(MPI_Unpublish_name("nobody", MPI_INFO_NULL, own), MPI_ERR_SERVICE, "unpublish");
    MPI_Publish_name("twice", MPI_INFO_NULL, own);
    refused(MPI_Publish_name("twice", MPI_INFO_NULL, own), MPI_ERR_SERVICE, "publish");
    refused(MPI_Unpublish_name("twice", MPI_INFO_NULL, port), MPI_ERR_SERVICE, "other port");
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argv[1];
    if (strcmp(what, "serve") == 0)
        serve(argv[2], NULL, atoi(argv[3]));
    else if (strcmp(what, "publish") == 0)
        serve(NULL, argv[2], atoi(argv[3]));
    else if (strcmp(what, "visit") == 0)
        visit(argv[2], NULL);
    else if (strcmp(what, "lookup") == 0)
        visit(NULL, argv[2]);
    else if (strcmp(what, "within") == 0)
        within();
    else
        wrong(argv[2]);
    MPI_Finalize();
    return 0;
}
