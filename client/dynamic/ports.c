/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Open_port, MPI_Comm_accept, MPI_Comm_connect, and published names (MPI-5.0 section 11.9). */
#include "client/dynamic/ports.h"

#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/comm/connect.h"
#include "client/comm/inter.h"
#include "client/dynamic/dynamic.h"
#include "client/object/err.h"
#include "client/object/info.h"
#include "client/process/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int class_of(int32_t refusal)
{
    switch (refusal) {
    case ATTACH_E_PORT:
        return MPI_ERR_PORT;
    case ATTACH_E_NAME:
        return MPI_ERR_NAME;
    case ATTACH_E_SERVICE:
        return MPI_ERR_SERVICE;
    default:
        return MPI_ERR_OTHER;
    }
}

int ports_ask(struct attach_ask *ask, struct foreign_request *q)
{
    if (!job_attached() || job_id() == 0)
        return err_set(MPI_ERR_OTHER, "this process was not started by mpiexec, so there is no "
                                      "daemon that knows of ports and names");
    if (foreign_ask_daemon(ask, q) < 0)
        return err_set(MPI_ERR_OTHER, "the daemon cannot be asked");
    int err = connect_wait(q);
    if (!err && q->spawned.error)
        err = err_set(class_of(q->spawned.error), "%s", q->spawned.text);
    return err;
}

static int put_port(struct attach_ask *ask, const char *port)
{
    if (strlen(port) >= sizeof ask->port)
        return err_set(MPI_ERR_PORT, "'%.60s...' is not a name that MPI_Open_port gave", port);
    strcpy(ask->port, port);
    return MPI_SUCCESS;
}

static int ask_name(enum attach_wish wish, const char *name, const char *port,
                    struct foreign_request *q)
{
    struct attach_ask ask = {.wish = (uint32_t)wish};
    int err = put_port(&ask, port);

    if (err)
        return err;
    if (!*name || strlen(name) >= sizeof ask.name)
        return err_set(MPI_ERR_ARG, "a service name has 1 to %zu bytes, this one %zu",
                       sizeof ask.name - 1, strlen(name));
    strcpy(ask.name, name);
    return ports_ask(&ask, q);
}

/* ---- meeting ---- */

/* What the root tells the others. */
struct encounter {
    uint64_t number;
    int32_t err, one_job;
    char text[500];
};

static int meet_at_root(enum attach_wish wish, const char *port, uint32_t timeout_ms,
                        struct encounter *ret_encounter, struct foreign **ret_foreign,
                        struct comm **ret_meeting)
{
    struct attach_ask ask = {.wish = (uint32_t)wish, .timeout_ms = timeout_ms};
    struct foreign_request q;
    int err = put_port(&ask, port);

    if (!err)
        err = ports_ask(&ask, &q);
    if (err)
        return err;
    ret_encounter->number = q.spawned.connection;
    ret_encounter->one_job = q.spawned.n == 0;
    if (q.spawned.n > 0) {
        *ret_foreign = foreign_spawned(&q);
        if (!*ret_foreign)
            return err_set(MPI_ERR_NO_MEM, "no memory for a connection with another job");
    }
    uint32_t n = q.spawned.n > 0 ? q.spawned.n : (uint32_t)job_size();
    if (q.spawned.peer_rank >= n)
        return err_set(MPI_ERR_INTERN, "the other end is rank %u of %u", q.spawned.peer_rank, n);
    return dynamic_meeting(*ret_foreign, (int)q.spawned.peer_rank, ret_meeting);
}

static int check_comm(const struct comm *comm)
{
    if (comm_is_inter(comm))
        return err_set(MPI_ERR_COMM, "%s is an intercommunicator", comm->name);
    if (comm->foreign)
        return err_set(MPI_ERR_COMM,
                       "%s has processes of several jobs: only a communicator within one job can "
                       "connect",
                       comm->name);
    return MPI_SUCCESS;
}

int ports_meet(enum attach_wish wish, const char *port, uint32_t timeout_ms, int root,
               struct comm *comm, struct comm **ret_intercomm)
{
    struct encounter e = {0};
    struct foreign *foreign = NULL;
    struct comm *meeting = NULL;
    struct schedule s;
    int err = check_comm(comm);

    if (err)
        return err;
    if (comm->rank == root) {
        err = meet_at_root(wish, port, timeout_ms, &e, &foreign, &meeting);
        e.err = err;
        snprintf(e.text, sizeof e.text, "%s", err ? err_detail(err) : "");
    }
    schedule_begin(&s, comm, coll_next_tag(comm));
    coll_bcast(&s, buffer_of(&e, (MPI_Count)sizeof e, datatype_predefined(MPI_BYTE)), root);
    err = schedule_end(&s);
    if (!err && e.err)
        err = err_set(e.err, "%s", e.text);
    /* A claim that fails is told by inter_meet, in which all take part. */
    if (!err && comm->rank != root && !e.one_job && connect_claim(e.number, &foreign) != 0)
        foreign = NULL;
    if (!err)
        err = inter_meet(comm, root, meeting, dynamic_tag(e.number), ret_intercomm);
    if (meeting)
        comm_unref(meeting);
    if (foreign)
        foreign_unref(foreign);
    return err;
}

/* ---- MPI functions ---- */

int mpi_open_port(struct info *info, char *port_name)
{
    struct attach_ask ask = {.wish = ATTACH_OPEN_PORT};
    struct foreign_request q;
    int err = ports_ask(&ask, &q);

    (void)info; /* ip_port and ip_address are of no use to a port that is not a socket */
    if (!err)
        strcpy(port_name, q.spawned.port);
    return err;
}

int mpi_close_port(const char *port_name)
{
    struct attach_ask ask = {.wish = ATTACH_CLOSE_PORT};
    struct foreign_request q;
    int err = put_port(&ask, port_name);

    return err ? err : ports_ask(&ask, &q);
}

int mpi_comm_accept(const char *port_name, struct info *info, int root, struct comm *comm,
                    struct comm **ret_newcomm)
{
    (void)info;
    return ports_meet(ATTACH_ACCEPT, port_name, 0, root, comm, ret_newcomm);
}

/* The info key timeout, in seconds; 0: none. */
static uint32_t timeout_of(const struct info *info)
{
    const char *value = info_get(info, "timeout");
    double seconds = value ? strtod(value, NULL) : 0;

    return seconds > 0 && seconds < 4e6 ? (uint32_t)(seconds * 1000) + 1 : 0;
}

int mpi_comm_connect(const char *port_name, struct info *info, int root, struct comm *comm,
                     struct comm **ret_newcomm)
{
    uint32_t timeout_ms = comm->rank == root ? timeout_of(info) : 0;

    return ports_meet(ATTACH_CONNECT, port_name, timeout_ms, root, comm, ret_newcomm);
}

int mpi_publish_name(const char *service_name, struct info *info, const char *port_name)
{
    struct foreign_request q;

    (void)info;
    return ask_name(ATTACH_PUBLISH, service_name, port_name, &q);
}

int mpi_unpublish_name(const char *service_name, struct info *info, const char *port_name)
{
    struct foreign_request q;

    (void)info;
    return ask_name(ATTACH_UNPUBLISH, service_name, port_name, &q);
}

int mpi_lookup_name(const char *service_name, struct info *info, char *port_name)
{
    struct foreign_request q;
    int err = ask_name(ATTACH_LOOKUP, service_name, "", &q);

    (void)info;
    if (!err)
        strcpy(port_name, q.spawned.port);
    return err;
}
