/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/p2p/wire_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/progress/status.h"

void wire_fill(unsigned char *data, MPI_Count n, int seed)
{
    for (MPI_Count i = 0; i < n; i++)
        data[i] = (unsigned char)(i * 7 + i / 253 + seed * 31);
}

void wire_check_transfer(unsigned char *data, unsigned char *room, MPI_Count n, bool early)
{
    struct request *send = NULL, *recv = NULL;
    MPI_Status status;
    MPI_Count count;

    wire_fill(data, n, (int)n);
    memset(room, 0xee, (size_t)n + 1);
    if (early)
        send = wire_isend(0, 1, 1, data, n);
    wire_settle();
    recv = wire_irecv(1, 0, 1, room, n);
    if (!early)
        send = wire_isend(0, 1, 1, data, n);
    wire_settle();
    assert_int_equal(wire_finish(0, send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    assert_int_equal(wire_finish(1, recv, &status), MPI_SUCCESS);
    mpi_get_elements(&status, datatype_from_handle(MPI_BYTE), &count);
    assert_int_equal(count, n);
    assert_memory_equal(room, data, (size_t)n);
    assert_int_equal(room[n], 0xee);
    wire_check_quiet();
    for (uint32_t i = 0; i < wire_n_ranks(); i++)
        assert_true(wire_protocols(i)->rendezvous.n_numbers <= 1);
}

void wire_check_quiet(void)
{
    for (uint32_t i = 0; i < wire_n_ranks(); i++) {
        const struct protocols *p = wire_protocols(i);
        assert_int_equal(p->engine.n_waiting, 0);
        assert_int_equal(p->rendezvous.budget_used, 0);
        assert_true(list_empty(&p->rendezvous.sending) && list_empty(&p->rendezvous.backlog));
        assert_int_equal(p->coop.n_offers, 0);
        assert_int_equal(p->coop.n_joining, 0);
        assert_true(list_empty(&p->coop.offers) && list_empty(&p->coop.joining));
    }
}

void wire_check_status(const MPI_Status *status, int source, int tag, MPI_Count n)
{
    assert_int_equal(status->MPI_SOURCE, source);
    assert_int_equal(status->MPI_TAG, tag);
    assert_int_equal(status_get_count_bytes(status), n);
    assert_false(status_is_cancelled(status));
}

struct datatype *wire_byte(void)
{
    return datatype_from_handle(MPI_BYTE);
}

unsigned char wire_data[WIRE_LARGE], wire_room[WIRE_LARGE + 1];

int wire_set_up_apart(void **state)
{
    (void)state;
    wire_start(3, (const uint32_t[]){0, 1, 2});
    wire_fill(wire_data, WIRE_LARGE, 0);
    memset(wire_room, 0xee, sizeof wire_room);
    return 0;
}

void wire_check_received(struct request *recv, int source, int tag, MPI_Count n)
{
    MPI_Status status;

    wire_settle();
    assert_int_equal(wire_finish(1, recv, &status), MPI_SUCCESS);
    wire_check_status(&status, source, tag, n);
    assert_memory_equal(wire_room, wire_data, (size_t)n);
    assert_int_equal(wire_room[n], 0xee);
    memset(wire_room, 0xee, sizeof wire_room);
}

int wire_iprobe(int source, int tag, MPI_Status *status)
{
    struct comm *world = wire_as(1);
    int flag = -1;

    assert_int_equal(mpi_iprobe(source, tag, world, &flag, status), MPI_SUCCESS);
    return flag;
}
