/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_spawn and MPI_Comm_spawn_multiple (MPI-5.0 section 11.8). */
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/comm/connect.h"
#include "client/comm/inter.h"
#include "client/dynamic/command.h"
#include "client/dynamic/dynamic.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/p2p/p2p.h"
#include "client/process/job.h"
#include "client/progress/progress.h"

#include <stdio.h>
#include <stdlib.h>

/* What the root tells the others. */
struct outcome {
    uint64_t connection;
    int32_t err; /* class; text says why */
    int32_t n_asked, n_processes;
    char text[496];
};

/* Waits until the first child says that all of them are there, or the daemon that they will never
 * be. */
static int await_children(struct foreign_request *request, struct comm *meeting, int tag)
{
    struct request *hello;
    struct progress_wait wait;
    MPI_Status status;
    int word;
    int err = p2p_irecv(buffer_of(&word, 1, datatype_predefined(MPI_INT)),
                        envelope_user(meeting, 0, tag), &hello);

    if (err)
        return err;
    progress_wait_begin(&wait);
    while (!request_is_complete(hello) && !request->done)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    if (!request_is_complete(hello)) {
        mpi_cancel(&hello);
        request_wait(hello, &status);
        return err_set(MPI_ERR_SPAWN, "%s", request->spawned.text);
    }
    err = request_wait(hello, MPI_STATUS_IGNORE);
    foreign_spawn_done(request);
    return err;
}

/* At the root: the connection, and the communicator for meeting the first child. */
static int start_children(struct command *command, struct foreign **ret_foreign,
                          struct comm **ret_meeting)
{
    struct foreign_request request;

    if (!job_attached() || job_id() == 0)
        return err_set(MPI_ERR_SPAWN, "this process was not started by mpiexec, so no daemon can "
                                      "start others for it");
    if (foreign_spawn(command->bytes, (uint32_t)command->n, &request) < 0)
        return err_set(MPI_ERR_SPAWN, "the daemon cannot be asked");
    int err = connect_wait(&request);
    if (!err && request.spawned.error)
        err = err_set(MPI_ERR_SPAWN, "%s", request.spawned.text);
    if (err)
        return err;
    *ret_foreign = foreign_spawned(&request);
    if (!*ret_foreign)
        return err_set(MPI_ERR_NO_MEM, "no memory for a connection with another job");
    foreign_again(&request);
    err = dynamic_meeting(*ret_foreign, 0, ret_meeting);
    if (!err)
        err = await_children(&request, *ret_meeting, dynamic_tag((*ret_foreign)->number));
    foreign_request_end(&request);
    return err;
}

/* What came of it, for all ranks. */
static int share(struct comm *comm, int root, struct outcome *outcome)
{
    struct schedule s;

    schedule_begin(&s, comm, coll_next_tag(comm));
    coll_bcast(&s, buffer_of(outcome, (MPI_Count)sizeof *outcome, datatype_predefined(MPI_BYTE)),
               root);
    return schedule_end(&s);
}

/* One code for each process that was asked for, part by part: those that `soft` left out have none
 * either. All ranks have the array (MPI-5.0 section 11.8.2). */
static int give_codes(int err, struct comm *comm, int root, const struct command *command,
                      const struct outcome *outcome, int errcodes[])
{
    int n = outcome->n_asked, at = 0;
    struct schedule s;

    if (outcome->err || outcome->n_processes == n) {
        for (int i = 0; errcodes && i < n; i++)
            errcodes[i] = outcome->err ? MPI_ERR_SPAWN : MPI_SUCCESS;
        return err;
    }
    int *codes = malloc((size_t)n * sizeof(int));
    if (!codes)
        return err_set(MPI_ERR_NO_MEM, "no memory for %d error codes", n);
    for (int part = 0; comm->rank == root && part < command->n_parts; part++)
        for (int i = 0; i < command->parts[2 * part]; i++)
            codes[at++] = i < command->parts[2 * part + 1] ? MPI_SUCCESS : MPI_ERR_SPAWN;
    schedule_begin(&s, comm, coll_next_tag(comm));
    coll_bcast(&s, buffer_of(codes, n, datatype_predefined(MPI_INT)), root);
    err = schedule_end(&s);
    for (int i = 0; errcodes && i < n; i++)
        errcodes[i] = codes[i];
    free(codes);
    return err;
}

static int meet_children(struct comm *comm, int root, struct comm *meeting, uint64_t number,
                         struct comm **ret_intercomm)
{
    struct foreign *foreign = NULL;
    /* A claim that fails is told by inter_meet, in which all take part. */
    int err = comm->rank == root ? MPI_SUCCESS : connect_claim(number, &foreign);

    (void)err;
    err = inter_meet(comm, root, meeting, dynamic_tag(number), ret_intercomm);
    if (foreign)
        foreign_unref(foreign);
    return err;
}

/* `err`: of the root's arguments. */
static int spawn(int err, struct command *command, struct comm *comm, int root,
                 struct comm **ret_intercomm, int errcodes[])
{
    struct outcome outcome = {0};
    struct foreign *foreign = NULL;
    struct comm *meeting = NULL;

    *ret_intercomm = NULL;
    if (comm->rank == root) {
        if (!err)
            err = start_children(command, &foreign, &meeting);
        outcome.err = err;
        outcome.n_asked = command->n_asked;
        outcome.n_processes = command->n_processes;
        outcome.connection = foreign ? foreign->number : 0;
        snprintf(outcome.text, sizeof outcome.text, "%s", err ? err_detail(err) : "");
    }
    err = share(comm, root, &outcome);
    if (!err && outcome.err)
        err = err_set(outcome.err, "%s", outcome.text);
    if (!err || outcome.err)
        err = give_codes(err, comm, root, command, &outcome, errcodes);
    if (!err)
        err = meet_children(comm, root, meeting, outcome.connection, ret_intercomm);
    if (meeting)
        comm_unref(meeting);
    if (foreign)
        foreign_unref(foreign);
    return err;
}

static int check_spawner(const struct comm *comm)
{
    if (comm_is_inter(comm))
        return err_set(MPI_ERR_COMM, "%s is an intercommunicator", comm->name);
    if (comm->foreign)
        return err_set(MPI_ERR_SPAWN,
                       "%s has processes of several jobs: only a communicator within one job can "
                       "spawn",
                       comm->name);
    return MPI_SUCCESS;
}

int mpi_comm_spawn(const char *command, char **argv, int maxprocs, struct info *info, int root,
                   struct comm *comm, struct comm **ret_intercomm, int errcodes[])
{
    struct command c = {0};
    int err = check_spawner(comm);

    if (err)
        return err;
    if (comm->rank == root) {
        err = command_begin(&c);
        if (!err)
            err = command_add(&c, command, argv, maxprocs, info);
    }
    err = spawn(err, &c, comm, root, ret_intercomm, errcodes);
    command_free(&c);
    return err;
}

int mpi_comm_spawn_multiple(MPI_Count count, char **commands, char ***argvs, const int maxprocs[],
                            const MPI_Info infos[], int root, struct comm *comm,
                            struct comm **ret_intercomm, int errcodes[])
{
    struct command c = {0};
    int err = check_spawner(comm);

    if (err)
        return err;
    if (comm->rank == root) {
        err = commands && maxprocs && infos ? command_begin(&c)
                                            : err_set(MPI_ERR_ARG, "%s is a null pointer",
                                                      !commands   ? "array_of_commands"
                                                      : !maxprocs ? "array_of_maxprocs"
                                                                  : "array_of_info");
        for (MPI_Count i = 0; !err && i < count; i++)
            err = command_add(&c, commands[i], argvs ? argvs[i] : NULL, maxprocs[i],
                              (struct info *)handle_object((uintptr_t)infos[i]));
    }
    err = spawn(err, &c, comm, root, ret_intercomm, errcodes);
    command_free(&c);
    return err;
}
