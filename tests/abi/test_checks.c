/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Argument checks of the bindings: each bad argument gives its class and a message that says what
 * was wrong.
 *
 * The communicator is made by hand, nothing communicates: a call that passed its checks would not
 * come back.
 */
#include "client/abi/check.h"
#include "client/coll/op/op.h"
#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/process/phase.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct group group = {.obj = {.refs = 1, .kind = OBJECT_GROUP}, .size = 4, .rank = 1};
static struct comm world = {.obj = {.refs = 1, .kind = OBJECT_COMM},
                            .rank = 1,
                            .size = 4,
                            .group = &group,
                            .name = "MPI_COMM_WORLD"};
static char buffer[64];

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(datatype_init(), 0);
    assert_int_equal(op_init(), 0);
    world.errhandler = &errhandler_here->ret;
    handle_set_predefined((uintptr_t)MPI_COMM_WORLD, &world.obj);
    comm_here->world = &world;
    comm_here->self = &world;
    phase_set(PHASE_ACTIVE);
    return 0;
}

static void expect(int err, int mpi_class, const char *text)
{
    if (err != mpi_class || strcmp(err_detail(mpi_class), text) != 0)
        fail_msg("got class %d: %s\nwanted class %d: %s", err, err_detail(err), mpi_class, text);
}

static void test_ranks(void **state)
{
    MPI_Status status;

    (void)state;
    expect(MPI_Send(buffer, 1, MPI_BYTE, 4, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
           "dest is 4, but MPI_COMM_WORLD has ranks 0 to 3 (MPI_PROC_NULL is allowed as well)");
    expect(MPI_Send(buffer, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
           "dest is -1, but MPI_COMM_WORLD has ranks 0 to 3 (MPI_PROC_NULL is allowed as well)");
    expect(MPI_Recv(buffer, 1, MPI_BYTE, -7, 0, MPI_COMM_WORLD, &status), MPI_ERR_RANK,
           "source is -7, but MPI_COMM_WORLD has ranks 0 to 3 (MPI_PROC_NULL and MPI_ANY_SOURCE "
           "are allowed as well)");
    expect(MPI_Bcast(buffer, 1, MPI_BYTE, MPI_PROC_NULL, MPI_COMM_WORLD), MPI_ERR_ROOT,
           "root is -3, but MPI_COMM_WORLD has ranks 0 to 3");
}

static void test_tags_and_counts(void **state)
{
    MPI_Status status;

    (void)state;
    expect(MPI_Send(buffer, 1, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG,
           "tag is -2, but tags are not negative");
    expect(MPI_Recv(buffer, 1, MPI_BYTE, 0, -3, MPI_COMM_WORLD, &status), MPI_ERR_TAG,
           "tag is -3, but tags are not negative (MPI_ANY_TAG is allowed as well)");
    expect(MPI_Send(buffer, -5, MPI_BYTE, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           "count is -5, but must not be negative");
    expect(MPI_Send_c(buffer, -5000000000, MPI_BYTE, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           "count is -5000000000, but must not be negative");
}

static void test_handles(void **state)
{
    struct object freed = {.kind = OBJECT_COMM};
    MPI_Comm old = (MPI_Comm)handle_new(&freed);
    MPI_Request request = (MPI_Request)(uintptr_t)0x777;
    char text[128];
    int size;

    (void)state;
    handle_free(&freed);
    snprintf(text, sizeof(text), "comm (0x%zx) is the handle of a communicator that has been freed",
             (size_t)old);
    expect(MPI_Comm_size(old, &size), MPI_ERR_COMM, text);
    expect(MPI_Comm_size(MPI_COMM_NULL, &size), MPI_ERR_COMM,
           "comm is MPI_COMM_NULL, not a communicator");
    expect(MPI_Comm_size((MPI_Comm)MPI_INT, &size), MPI_ERR_COMM,
           "comm is the handle of a datatype, not of a communicator");
    expect(MPI_Comm_size(MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "size is a null pointer");
    expect(MPI_Send(buffer, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           "datatype is MPI_DATATYPE_NULL, not a datatype");
    expect(MPI_Send(buffer, 1, (MPI_Datatype)MPI_COMM_WORLD, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           "datatype is the handle of a communicator, not of a datatype");
    expect(MPI_Allreduce(MPI_IN_PLACE, buffer, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP,
           "op is MPI_OP_NULL, not an operation");
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST,
           "request (0x777) is no handle of a request");
    expect(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST,
           "array_of_requests[0] (0x777) is no handle of a request");
}

static void test_types_and_buffers(void **state)
{
    MPI_Datatype pair;
    int counts[4] = {1, 1, -1, 1};

    (void)state;
    assert_int_equal(MPI_Type_contiguous(2, MPI_INT, &pair), MPI_SUCCESS);
    expect(MPI_Send(buffer, 1, pair, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           "datatype (derived datatype) has not been committed");
    assert_int_equal(MPI_Type_free(&pair), MPI_SUCCESS);
    expect(MPI_Send(NULL, 3, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           "buf is a null pointer, but is to hold 3 elements of MPI_INT");
    expect(MPI_Send(MPI_IN_PLACE, 3, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           "buf is MPI_IN_PLACE, which is not allowed here");
    expect(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, buffer, 1, MPI_INT, 0, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which only the root may give");
    expect(MPI_Allreduce(buffer, buffer, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           "recvbuf is the same as sendbuf; give MPI_IN_PLACE as sendbuf");
    expect(MPI_Allgatherv(buffer, 1, MPI_INT, buffer, counts, counts, MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_COUNT, "recvcounts[2] is -1, but must not be negative");
}

static void test_overlap(void **state)
{
    static const char same[] =
        "sendbuf and recvbuf have data at the same place; give MPI_IN_PLACE as sendbuf";
    int ints[64], ones[64], displs[64], rank;
    MPI_Datatype types[64], odd;

    (void)state;
    assert_int_equal(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_SUCCESS);
    for (int i = 0; i < 64; i++) {
        ones[i] = 1;
        displs[i] = i;
        types[i] = MPI_INT;
    }
    expect(MPI_Gather(ints, 1, MPI_INT, ints, 1, MPI_INT, rank, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           same);
    expect(MPI_Gatherv(&ints[rank], 1, MPI_INT, ints, ones, displs, MPI_INT, rank, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, same);
    expect(MPI_Allgather(&ints[rank], 1, MPI_INT, ints, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           same);
    expect(MPI_Allgatherv(&ints[rank], 1, MPI_INT, ints, ones, displs, MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, same);
    expect(MPI_Alltoall(ints, 1, MPI_INT, ints, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER, same);
    expect(MPI_Alltoallv(ints, ones, displs, MPI_INT, ints, ones, displs, MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, same);
    expect(MPI_Alltoallw(ints, ones, displs, types, ints, ones, displs, types, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, same);
    expect(MPI_Reduce_scatter(ints, ints, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           same);
    expect(MPI_Reduce_scatter_block(ints, ints, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, same);
    expect(MPI_Scatter(ints, 1, MPI_INT, &ints[rank], 1, MPI_INT, rank, MPI_COMM_WORLD),
           MPI_ERR_BUFFER,
           "sendbuf and recvbuf have data at the same place; give MPI_IN_PLACE as recvbuf");
    expect(MPI_Scatterv(ints, ones, displs, MPI_INT, &ints[rank], 1, MPI_INT, rank, MPI_COMM_WORLD),
           MPI_ERR_BUFFER,
           "sendbuf and recvbuf have data at the same place; give MPI_IN_PLACE as recvbuf");
    /* Between one another's elements, nothing overlaps. */
    assert_int_equal(MPI_Type_create_indexed_block(1, 1, (int[]){1}, MPI_INT, &odd), MPI_SUCCESS);
    struct check_blocks even_ints = {
        .buf = ints, .type = datatype_from_handle(MPI_INT), .count = 1};
    struct check_blocks odd_ints = {.buf = ints, .type = datatype_from_handle(odd), .count = 1};
    assert_false(check_overlap(comm_here->world, &odd_ints, &even_ints));
    assert_true(check_overlap(comm_here->world, &even_ints, &even_ints));
    even_ints.count = 0;
    assert_false(check_overlap(comm_here->world, &even_ints, &even_ints));
    assert_int_equal(MPI_Type_free(&odd), MPI_SUCCESS);
}

static void test_no_socket(void **state)
{
    int fd = -1;
    MPI_Comm comm;

    (void)state;
    expect(MPI_Comm_join(fd, &comm), MPI_ERR_OTHER, "the socket: Bad file descriptor");
}

static void test_integers(void **state)
{
    (void)state;
    assert_int_equal(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
    assert_true(MPI_Comm_fromint(0x101) == MPI_COMM_WORLD);
    assert_true(MPI_Comm_fromint(0x7ffffff) == MPI_COMM_NULL);
    assert_int_equal(MPI_Aint_add((MPI_Aint)buffer, 3), (MPI_Aint)(buffer + 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),    cmocka_unit_test(test_tags_and_counts),
        cmocka_unit_test(test_handles),  cmocka_unit_test(test_types_and_buffers),
        cmocka_unit_test(test_overlap),  cmocka_unit_test(test_no_socket),
        cmocka_unit_test(test_integers),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
