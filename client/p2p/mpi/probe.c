/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes and matched probes (MPI-5.0 section 3.8). A probe looks at the unexpected messages; a
 * matched probe takes the message off the table, so that no other receive or thread can have it,
 * and gives it a handle.
 */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/p2p/inbound.h"
#include "client/p2p/transfer.h"
#include "client/progress/progress.h"
#include "client/progress/status.h"

struct message {
    struct object obj;
    struct unexpected *unexpected; /* NULL: the message of MPI_PROC_NULL */
    struct comm *comm;
};

struct probe_state {
    struct message no_proc; /* what MPI_MESSAGE_NO_PROC stands for */
};
static struct probe_state probe_first;
static struct probe_state *probe_here = &probe_first;

/* Before main(): applications may receive MPI_MESSAGE_NO_PROC without a probe that gave it. */
static void probe_part_init(void)
{
    probe_here->no_proc.obj = (struct object){.refs = 1, .kind = OBJECT_MESSAGE};
    handle_set_predefined((uintptr_t)MPI_MESSAGE_NO_PROC, &probe_here->no_proc.obj);
}
CLIENT_PART(probe_here, probe_first, .init = probe_part_init);

static void probe_describe(const struct unexpected *u, MPI_Status *status)
{
    MPI_Count bytes = u->kind == UNEXPECTED_SELF ? u->self->bytes : u->bytes;
    status_set_received(status, u->match.source, u->match.tag, bytes);
}

/* Looks for a message, describes it, and takes it off the table if the caller wants it. */
static bool probe_look(int source, int tag, const struct comm *comm, MPI_Status *status,
                       struct unexpected **ret_taken)
{
    struct engine *e = engine_of(comm);
    struct unexpected *u = NULL;

    engine_enter(e);
    if (e->match.n_unexpected > 0)
        u = match_find_unexpected(&e->match, comm->context_id + P2P_CONTEXT_USER, source, tag);
    if (u) {
        probe_describe(u, status);
        if (ret_taken) {
            match_remove_unexpected(&e->match, u);
            *ret_taken = u;
        }
    }
    engine_leave(e);
    return u != NULL;
}

static void probe_wait(int source, int tag, const struct comm *comm, MPI_Status *status,
                       struct unexpected **ret_taken)
{
    struct engine *e = engine_of(comm);
    struct progress_wait wait;
    struct queue_record *record = NULL;

    progress_wait_begin(&wait);
    while (!probe_look(source, tag, comm, status, ret_taken)) {
        progress_wait_step(&wait);
        if (__builtin_expect(wait.record && !record, 0)) {
            engine_enter(e);
            record_show_wait(&e->records, &record, comm->context_id + P2P_CONTEXT_USER, source,
                             source < 0 ? -1 : comm_peers(comm)->procs[source], tag);
            engine_leave(e);
        }
    }
    progress_wait_end(&wait);
    if (record) {
        engine_enter(e);
        record_hide(&e->records, &record);
        engine_leave(e);
    }
}

static bool probe_look_twice(int source, int tag, const struct comm *comm, MPI_Status *status,
                             struct unexpected **ret_taken)
{
    if (probe_look(source, tag, comm, status, ret_taken))
        return true;
    progress_ask();
    return probe_look(source, tag, comm, status, ret_taken);
}

int mpi_probe(int source, int tag, struct comm *comm, MPI_Status *status)
{
    if (source == MPI_PROC_NULL)
        status_set_proc_null(status);
    else
        probe_wait(source, tag, comm, status, NULL);
    return MPI_SUCCESS;
}

int mpi_iprobe(int source, int tag, struct comm *comm, int *flag, MPI_Status *status)
{
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        status_set_proc_null(status);
    } else {
        *flag = probe_look_twice(source, tag, comm, status, NULL);
    }
    return MPI_SUCCESS;
}

/* A handle for the message that will be taken. NULL, with the error in *ret_err: no memory, no
 * handle. */
static struct message *probe_new_message(struct comm *comm, int *ret_err)
{
    struct message *m = malloc(sizeof *m);

    if (!m) {
        *ret_err = err_set(MPI_ERR_NO_MEM, "no memory for a message handle");
        return NULL;
    }
    *m = (struct message){.obj = {.refs = 1, .kind = OBJECT_MESSAGE}, .comm = comm};
    if (!handle_new(&m->obj)) {
        free(m);
        *ret_err = err_set(MPI_ERR_NO_MEM, "no handle is left for a message");
        return NULL;
    }
    comm_ref(comm);
    return m;
}

static void probe_free_message(struct message *m)
{
    comm_unref(m->comm);
    handle_free(&m->obj);
    free(m);
}

static int probe_take_no_proc(struct message **ret_message, MPI_Status *status)
{
    status_set_proc_null(status);
    *ret_message = &probe_here->no_proc;
    return MPI_SUCCESS;
}

int mpi_mprobe(int source, int tag, struct comm *comm, struct message **ret_message,
               MPI_Status *status)
{
    if (source == MPI_PROC_NULL)
        return probe_take_no_proc(ret_message, status);
    int err = MPI_SUCCESS;
    struct message *m = probe_new_message(comm, &err);
    if (!m)
        return err;
    probe_wait(source, tag, comm, status, &m->unexpected);
    *ret_message = m;
    return MPI_SUCCESS;
}

int mpi_improbe(int source, int tag, struct comm *comm, int *flag, struct message **ret_message,
                MPI_Status *status)
{
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        return probe_take_no_proc(ret_message, status);
    }
    int err = MPI_SUCCESS;
    *flag = 0;
    if (!probe_look_twice(source, tag, comm, status, NULL))
        return MPI_SUCCESS;
    struct message *m = probe_new_message(comm, &err);
    if (!m)
        return err;
    /* Another thread may have taken it. */
    *flag = probe_look(source, tag, comm, status, &m->unexpected);
    if (*flag)
        *ret_message = m;
    else
        probe_free_message(m);
    return MPI_SUCCESS;
}

int mpi_imrecv(void *buf, MPI_Count count, struct datatype *datatype, struct message **message,
               struct request **ret_request)
{
    struct message *m = *message;

    *message = NULL;
    if (!m->unexpected)
        return request_publish(
            request_new_complete(NULL, MPI_PROC_NULL, MPI_ANY_TAG, 0, ret_request), ret_request);
    struct engine *e = engine_of(m->comm);
    engine_enter(e);
    struct transfer *t =
        transfer_new(TRANSFER_RECV, buffer_of(buf, count, datatype),
                     envelope_user(m->comm, m->unexpected->match.source, m->unexpected->match.tag));
    if (t) {
        inbound_take_unexpected(t, m->unexpected);
        transfer_left(t);
    }
    engine_leave(e);
    if (!t) {
        *message = m;
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    }
    probe_free_message(m);
    *ret_request = &t->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_mrecv(void *buf, MPI_Count count, struct datatype *datatype, struct message **message,
              MPI_Status *status)
{
    struct request *r = NULL;
    int err = mpi_imrecv(buf, count, datatype, message, &r);

    return err ? err : request_wait(r, status);
}
