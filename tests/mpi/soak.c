/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects come and go, and nothing stays: soak [ITERATIONS] [SECONDS]. Any number of ranks; uses
 * mpi.h alone.
 *
 * Every iteration makes, uses and frees objects of one sort: requests (isend, irecv, persistent,
 * freed, cancelled), datatypes, groups, communicators (dup, split, create, idup, freed with a
 * message still in it), attributes, info objects, operations, error handlers. Communicators are
 * rarer than the rest, since they are collective. The iterations end at the number or the time,
 * whichever is first. After a tenth of them has warmed everything up, the memory of the process may
 * grow by less than LIMIT_BYTES, whatever their number.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_BYTES (2L << 20)

static int rank, size;

static void fail(const char *what)
{
    fprintf(stderr, "soak: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static long resident_bytes(void)
{
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
        fail("no /proc/self/statm");
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void churn_requests(long i)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out[4] = {(int)i, 1, 2, 3},
        in[4] = {0}, flag;
    MPI_Request r[2], never;
    MPI_Irecv(in, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, 4, MPI_INT, right, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    if (in[0] != (int)i)
        fail("a message of another iteration");
    MPI_Irecv(in, 4, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &never);
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
    MPI_Send_init(out, 4, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in, 4, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    MPI_Isend(out, 4, MPI_INT, rank, 3, MPI_COMM_WORLD, &r[0]);
    MPI_Request_free(&r[0]); /* goes on without its handle */
    MPI_Iprobe(rank, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(in, 4, MPI_INT, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void churn_types(long i)
{
    MPI_Datatype inner, outer, copy, part[2];
    int lengths[2] = {1, 2}, value[64] = {0};
    MPI_Aint places[2] = {0, 64};
    MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
    part[0] = inner;
    part[1] = MPI_DOUBLE;
    MPI_Type_create_struct(2, lengths, places, part, &outer);
    MPI_Type_commit(&outer);
    MPI_Type_dup(outer, &copy);
    MPI_Type_set_name(copy, "soaked");
    MPI_Type_free(&inner);
    MPI_Type_free(&outer);
    MPI_Sendrecv(value, 1, copy, 0, 4, value + 32, 32, MPI_INT, 0, 4, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    MPI_Type_free(&copy);
    (void)i;
}

static void combine(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)n;
    (void)type;
}

static void churn_small(long i)
{
    MPI_Group world, part, both;
    MPI_Info info, info_copy;
    MPI_Op op;
    MPI_Errhandler handler;
    int first[1] = {(int)(i % size)}, keyval;
    char text[32];
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, first, &part);
    MPI_Group_union(part, world, &both);
    MPI_Group_free(&part);
    MPI_Group_free(&both);
    MPI_Group_free(&world);
    MPI_Info_create(&info);
    snprintf(text, sizeof text, "%ld", i);
    MPI_Info_set(info, "a key", text);
    MPI_Info_dup(info, &info_copy);
    MPI_Info_free(&info);
    MPI_Info_free(&info_copy);
    MPI_Op_create(combine, 1, &op);
    MPI_Op_free(&op);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, text);
    MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    MPI_Comm_free_keyval(&keyval);
}

static void churn_comms(long i)
{
    MPI_Comm copy, part, later, created;
    MPI_Group group;
    MPI_Request request;
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, rank % 2, -rank, &part);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
    MPI_Comm_free(&part);
    MPI_Comm_idup(copy, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(&sum, 1, MPI_INT, (rank + 1) % size, 5, later, &request);
    MPI_Recv(&sum, 1, MPI_INT, (rank + size - 1) % size, 5, later, MPI_STATUS_IGNORE);
    MPI_Comm_free(&later); /* with a send that nobody has waited for */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_group(copy, &group);
    MPI_Comm_create(copy, group, &created);
    MPI_Group_free(&group);
    MPI_Ibarrier(created, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&created);
    MPI_Comm_free(&copy);
    (void)i;
}

/* Iterations until the clock of rank 0 says that it is time, told in steps that all ranks make. */
static long run(long n, double until)
{
    long done = 0;
    int go_on = 1;
    while (done < n && go_on) {
        for (int k = 0; k < 100 && done < n; k++, done++) {
            churn_requests(done);
            churn_types(done);
            churn_small(done);
            if (done % 10 == 0)
                churn_comms(done);
        }
        go_on = MPI_Wtime() < until;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return done;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 10000;
    double seconds = argc > 2 ? atof(argv[2]) : 1e9;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double start = MPI_Wtime();
    long warm = run(n / 10 + 1, start + seconds / 10), before = resident_bytes();
    long done = run(n, start + seconds), growth = resident_bytes() - before, largest = 0;
    MPI_Reduce(&growth, &largest, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("soak: %ld and %ld iterations, memory grew by %ld bytes\n", warm, done, largest);
    if (growth > LIMIT_BYTES)
        fail("memory grows");
    MPI_Finalize();
    return 0;
}
