/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes and matched probes (MPI-5.0 section 3.8). A probe looks at the unexpected messages; a matched probe takes the message off the
 * table, so that no other receive or thread can have it, and gives it a handle.
 */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/core/err.h"
#include "client/core/group.h"
#include "client/core/handle.h"
#include "client/core/progress.h"
#include "client/core/status.h"
#include "client/p2p/board.h"
#include "client/p2p/inbound.h"
#include "client/p2p/transfer.h"

struct message {
    struct object obj;
    struct unexpected *unexpected; /* NULL: the message of MPI_PROC_NULL */
    struct comm *comm;
};

/* What MPI_MESSAGE_NO_PROC stands for. */
static struct message no_proc = {.obj = {.refs = 1, .kind = OBJECT_MESSAGE, .predefined = true}};

/* Before main(): applications may receive MPI_MESSAGE_NO_PROC without a probe that gave it. */
__attribute__((constructor)) static void make_no_proc_known(void)
{
    handle_set_predefined((uintptr_t)MPI_MESSAGE_NO_PROC, &no_proc.obj);
}

static struct unexpected *look(int source, int tag, const struct comm *comm)
{
    if (match_n_unexpected == 0)
        return NULL;
    return match_find_unexpected(comm->context_id + P2P_CONTEXT_USER, source, tag);
}

static struct unexpected *wait_for_message(int source, int tag, const struct comm *comm)
{
    struct progress_wait wait;
    struct unexpected *u;
    struct queue_record *record = NULL;

    progress_wait_begin(&wait);
    while ((u = look(source, tag, comm)) == NULL) {
        progress_wait_step(&wait);
        if (__builtin_expect(wait.record && !record, 0))
            board_show_wait(&record, comm->context_id + P2P_CONTEXT_USER, source, source < 0 ? -1 : comm_peers(comm)->procs[source], tag);
    }
    progress_wait_end(&wait);
    board_hide(&record);
    return u;
}

static void describe(const struct unexpected *u, MPI_Status *status)
{
    MPI_Count bytes = u->kind == UNEXPECTED_SELF ? u->self->bytes : u->bytes;
    status_set_received(status, u->match.source, u->match.tag, bytes);
}

int mpi_probe(int source, int tag, struct comm *comm, MPI_Status *status)
{
    if (source == MPI_PROC_NULL)
        status_set_proc_null(status);
    else
        describe(wait_for_message(source, tag, comm), status);
    return MPI_SUCCESS;
}

int mpi_iprobe(int source, int tag, struct comm *comm, int *flag, MPI_Status *status)
{
    *flag = 1;
    if (source == MPI_PROC_NULL) {
        status_set_proc_null(status);
        return MPI_SUCCESS;
    }
    struct unexpected *u = look(source, tag, comm);
    if (!u) {
        progress_poll();
        u = look(source, tag, comm);
    }
    *flag = u != NULL;
    if (u)
        describe(u, status);
    return MPI_SUCCESS;
}

static int take(struct unexpected *u, struct comm *comm, struct message **ret_message, MPI_Status *status)
{
    struct message *m = malloc(sizeof *m);

    if (!m)
        return err_set(MPI_ERR_NO_MEM, "no memory for a message handle");
    *m = (struct message){.obj = {.refs = 1, .kind = OBJECT_MESSAGE}, .unexpected = u, .comm = comm};
    if (!handle_new(&m->obj)) {
        free(m);
        return err_set(MPI_ERR_NO_MEM, "no handle is left for a message");
    }
    comm_ref(comm);
    match_remove_unexpected(u);
    describe(u, status);
    *ret_message = m;
    return MPI_SUCCESS;
}

static int take_no_proc(struct message **ret_message, MPI_Status *status)
{
    status_set_proc_null(status);
    *ret_message = &no_proc;
    return MPI_SUCCESS;
}

int mpi_mprobe(int source, int tag, struct comm *comm, struct message **ret_message, MPI_Status *status)
{
    if (source == MPI_PROC_NULL)
        return take_no_proc(ret_message, status);
    return take(wait_for_message(source, tag, comm), comm, ret_message, status);
}

int mpi_improbe(int source, int tag, struct comm *comm, int *flag, struct message **ret_message, MPI_Status *status)
{
    *flag = 1;
    if (source == MPI_PROC_NULL)
        return take_no_proc(ret_message, status);
    struct unexpected *u = look(source, tag, comm);
    if (!u) {
        progress_poll();
        u = look(source, tag, comm);
    }
    *flag = u != NULL;
    return u ? take(u, comm, ret_message, status) : MPI_SUCCESS;
}

int mpi_imrecv(void *buf, MPI_Count count, struct datatype *datatype, struct message **message, struct request **ret_request)
{
    struct message *m = *message;

    *message = NULL;
    if (!m->unexpected)
        return request_publish(request_new_complete(NULL, MPI_PROC_NULL, MPI_ANY_TAG, 0, ret_request), ret_request);
    struct transfer *t = transfer_new(TRANSFER_RECV, buf, count, datatype, m->unexpected->match.source,
                                      m->unexpected->match.tag, m->comm, P2P_CONTEXT_USER, false);
    if (!t) {
        *message = m;
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    }
    inbound_take_unexpected(t, m->unexpected);
    transfer_left(t);
    comm_unref(m->comm);
    handle_free(&m->obj);
    free(m);
    *ret_request = &t->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_mrecv(void *buf, MPI_Count count, struct datatype *datatype, struct message **message, MPI_Status *status)
{
    struct request *r = NULL;
    int err = mpi_imrecv(buf, count, datatype, message, &r);

    return err ? err : request_wait(r, status);
}
