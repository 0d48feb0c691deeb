/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One situation of spawned processes each, for test_spawned.py, which judges how it ends:
 *   spawned try PROGRAM N [KEY VALUE]...   rank 0 asks for it and prints class, codes and text
 *   spawned with MODE N [KEY VALUE]...     rank 0 asks for this program in that mode, and prints
 * what the first child says spawned MODE as a parent               below
 */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int rank, size;

static MPI_Info info_of(char **words)
{
    MPI_Info info;

    MPI_Info_create(&info);
    for (; words[0] && words[1]; words += 2)
        MPI_Info_set(info, words[0], words[1]);
    return info;
}

static void try(char **argv)
{
    int n = atoi(argv[1]), *codes = calloc((size_t)n, sizeof *codes), class, len;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Info info = info_of(argv + 2);
    MPI_Comm inter;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, n, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Error_class(rc, &class);
    MPI_Error_string(rc, text, &len);
    printf("class %s codes", class == MPI_ERR_SPAWN ? "spawn" : "other");
    for (int i = 0; i < n; i++)
        printf(" %s", codes[i] == MPI_ERR_SPAWN ? "spawn" : "other");
    printf(" text %s\n", text);
    MPI_Info_free(&info);
    free(codes);
}

static MPI_Comm spawn_self(char *program, char *mode, int n, char **words, int *codes)
{
    char *argv[] = {mode, (char *)"two words", (char *)"", NULL};
    MPI_Info info = info_of(words);
    MPI_Comm inter;

    MPI_Comm_spawn(program, argv, n, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Info_free(&info);
    return inter;
}

static void with(char *program, char **argv)
{
    int n = atoi(argv[1]), *codes = calloc((size_t)n, sizeof *codes), n_children;
    char said[1000] = "";
    MPI_Comm inter = spawn_self(program, argv[0], n, argv + 2, codes);

    MPI_Comm_remote_size(inter, &n_children);
    MPI_Bcast(said, sizeof said, MPI_CHAR, 0, inter);
    printf("%d children:", n_children);
    for (int i = 0; i < n; i++)
        printf(" %s", codes[i] == MPI_SUCCESS ? "good" : codes[i] == MPI_ERR_SPAWN ? "spawn" : "?");
    printf("; %s\n", said);
    MPI_Comm_disconnect(&inter);
    free(codes);
}

static void say(MPI_Comm parent, const char *text)
{
    char said[1000] = "";

    snprintf(said, sizeof said, "%s", text);
    MPI_Bcast(said, sizeof said, MPI_CHAR, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, parent);
    MPI_Comm_disconnect(&parent);
}

/* ---- as a child ---- */

static void child(MPI_Comm parent, int argc, char **argv)
{
    const char *mode = argv[1];
    char text[1000], folder[500];
    int *appnum = NULL, *universe = NULL, flag, word = 0;

    if (strcmp(mode, "tell") == 0) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
        snprintf(text, sizeof text, "argc %d '%s' '%s' in %s app %d MARK %s", argc, argv[2],
                 argv[3], getcwd(folder, sizeof folder), *appnum,
                 getenv("CHILD") ? "set" : "unset");
        say(parent, text);
    } else if (strcmp(mode, "die") == 0) { /* while it is connected */
        if (rank == size - 1)
            raise(SIGKILL);
        MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "abort") == 0) {
        if (rank == 0)
            MPI_Abort(MPI_COMM_WORLD, 9);
        MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "wait") == 0) { /* for what never comes */
        MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "fail-later") == 0) {
        say(parent, "good-bye");
        exit(6);
    } else if (strcmp(mode, "outlive") == 0) {
        say(parent, "good-bye");
        sleep(1);
        printf("child %d of %d is done\n", rank, size);
    }
}

/* ---- as a parent ---- */

static void parent_ends(char *program, const char *how)
{
    char *none[] = {NULL};
    int code;

    MPI_Comm inter = spawn_self(program, (char *)"wait", 1, none, &code);
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (strcmp(how, "exit") == 0)
        exit(4);
    puts("both wait");
    fflush(stdout);
    MPI_Recv(&code, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
}

/* Gives up on children that never come: SIGALRM ends it. */
static void parent_dies_early(void)
{
    char *argv[] = {(char *)"600", NULL};
    const struct itimerval soon = {.it_value.tv_usec = 200000};
    MPI_Comm inter;
    int code;

    setitimer(ITIMER_REAL, &soon, NULL);
    MPI_Comm_spawn("sleep", argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, &code);
}

/* Which ranks of both jobs together are split off with this one. */
static void split_merged(char *program)
{
    char *argv[] = {(char *)"split", NULL};
    int code, n;
    MPI_Comm inter, all, near;

    MPI_Comm_get_parent(&inter);
    if (inter == MPI_COMM_NULL)
        MPI_Comm_spawn(program, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, &code);
    MPI_Intercomm_merge(inter, 0, &all);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_size(near, &n);
    int *base, same;
    MPI_Win win;
    MPI_Win_allocate_shared(sizeof *base, 1, MPI_INFO_NULL, near, &base, &win);
    MPI_Win_free(&win);
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(near, &group);
    MPI_Group_compare(world, group, &same);
    printf("%s: %d share memory%s\n", rank == 0 ? "first" : "other", n,
           same == MPI_IDENT || same == MPI_SIMILAR ? ", its own job" : "");
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    MPI_Comm_free(&near);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &near);
    if (near != MPI_COMM_NULL)
        MPI_Comm_free(&near);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;

    if (argc > 1 && strcmp(argv[1], "quit") == 0) /* before MPI_Init */
        return 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (strcmp(argv[1], "split") == 0)
        split_merged(argv[0]);
    else if (parent != MPI_COMM_NULL)
        child(parent, argc, argv);
    else if (strcmp(argv[1], "try") == 0)
        try(argv + 2);
    else if (strcmp(argv[1], "with") == 0)
        with(argv[0], argv + 2);
    else if (strcmp(argv[1], "early") == 0)
        parent_dies_early();
    else
        parent_ends(argv[0], argv[1]);
    MPI_Finalize();
    return 0;
}
