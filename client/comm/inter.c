/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Intercomm_create and MPI_Intercomm_merge. */
#include "client/comm/inter.h"
#include "client/abi/semantics.h"
#include "client/coll/family/coll.h"
#include "client/comm/connect.h"
#include "client/comm/context.h"
#include "client/comm/create.h"
#include "client/object/err.h"
#include "client/process/job.h"
#include "client/transport/foreign.h"

#include <stdlib.h>
#include <string.h>

/* ---- create ---- */

/* One creation: the leaders talk over the peer communicator, each one's group over its own. */
struct bridge {
    struct schedule local;   /* over the local communicator */
    struct schedule leaders; /* over the peer communicator; leader only */
    int local_leader, remote_leader;
    bool leads;
    struct datatype *int_type;
};

/* The leaders exchange n ints in place of `theirs`, which every member then gets. */
static void cross(struct bridge *b, const int *mine, int n_mine, int *theirs, int n_theirs)
{
    if (b->leads)
        schedule_sendrecv(&b->leaders, buffer_of(mine, n_mine, b->int_type), b->remote_leader,
                          buffer_of(theirs, n_theirs, b->int_type), b->remote_leader);
    coll_bcast(&b->local, buffer_of(theirs, n_theirs, b->int_type), b->local_leader);
}

static int error_of(const struct bridge *b)
{
    return b->local.err ? b->local.err : b->leads ? b->leaders.err : MPI_SUCCESS;
}

/* A process as another job can understand it. */
struct member {
    uint64_t job;
    uint64_t connection; /* with that job, of those who read it; 0: it is their own job */
    int64_t rank;        /* in its job's world */
};
#define MEMBER_WORDS ((int)(sizeof(struct member) / sizeof(int)))

/* Rank of a process in the world of its job. */
static int64_t process_name(int proc, uint64_t *ret_job)
{
    const struct foreign *f = foreign_of((uint32_t)proc);
    *ret_job = f ? f->job : job_id();
    return f ? (int64_t)((uint32_t)proc - f->first) : proc;
}

static struct member *members_of(const struct group *group)
{
    struct member *m = calloc((size_t)group->size, sizeof *m);
    for (int i = 0; m && i < group->size; i++) {
        m[i].rank = process_name(group->procs[i], &m[i].job);
    }
    return m;
}

/* Leader: by which connections the job's own ranks reach the members. */
static void name_connections(struct member *m, int n)
{
    for (int i = 0; i < n; i++) {
        const struct foreign *f = m[i].job == job_id() ? NULL : foreign_with_job(m[i].job);
        m[i].connection = m[i].job == job_id() ? 0 : f ? f->number : UINT64_MAX;
    }
}

/* The connections through which members are reached, while they are not a communicator's yet. */
struct holds {
    struct foreign **held;
    int n;
};

static void release_holds(struct holds *holds)
{
    for (int i = 0; i < holds->n; i++)
        foreign_unref(holds->held[i]);
    free(holds->held);
    *holds = (struct holds){0};
}

static int hold(struct holds *holds, uint64_t number, struct foreign **ret_foreign)
{
    for (int i = 0; i < holds->n; i++)
        if (holds->held[i]->number == number) {
            *ret_foreign = holds->held[i];
            return MPI_SUCCESS;
        }
    struct foreign **grown = realloc(holds->held, ((size_t)holds->n + 1) * sizeof *grown);
    if (!grown)
        return err_set(MPI_ERR_NO_MEM, "no memory for a connection with another job");
    holds->held = grown;
    int err = connect_claim(number, ret_foreign);
    if (!err)
        holds->held[holds->n++] = *ret_foreign;
    return err;
}

/* The process index of a member here. */
static int member_proc(const struct member *m, struct holds *holds, int *ret_proc)
{
    struct foreign *f = NULL;
    if (m->connection == UINT64_MAX)
        return err_set(MPI_ERR_COMM,
                       "rank %lld of job %016llx cannot be reached: the leader's job is not "
                       "connected with that job",
                       (long long)m->rank, (unsigned long long)m->job);
    int err = m->connection ? hold(holds, m->connection, &f) : MPI_SUCCESS;
    if (err)
        return err;
    int64_t n = f ? (int64_t)f->n : job_size();
    if (m->rank < 0 || m->rank >= n)
        return err_set(MPI_ERR_INTERN, "a remote process has the impossible rank %lld",
                       (long long)m->rank);
    *ret_proc = (f ? (int)f->first : 0) + (int)m->rank;
    return MPI_SUCCESS;
}

/* Between jobs a member may fail where others do not, so all hear of it. */
static int all_succeeded(struct bridge *b, int err)
{
    int failed = err != MPI_SUCCESS, theirs = 0;
    coll_allreduce(&b->local, MPI_IN_PLACE, buffer_of(&failed, 1, b->int_type),
                   op_predefined(MPI_MAX));
    cross(b, &failed, 1, &theirs, 1);
    if (err || error_of(b))
        return err ? err : error_of(b);
    return failed || theirs
               ? err_set(MPI_ERR_OTHER, "another process of the new communicator cannot reach all "
                                        "others")
               : MPI_SUCCESS;
}

static int settle_members(const struct group *group, const struct member *m, int n,
                          struct holds *holds, struct group **ret_remote)
{
    int *procs = malloc(((size_t)n + 1) * sizeof(int));
    int err =
        procs ? MPI_SUCCESS : err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes", n);
    for (int i = 0; !err && i < n; i++) {
        err = member_proc(&m[i], holds, &procs[i]);
        if (!err && group_rank_of((struct group *)group, procs[i]) != MPI_UNDEFINED)
            err =
                err_set(MPI_ERR_COMM,
                        "the groups are not disjoint: rank %d of the remote one is local, too", i);
    }
    if (!err)
        err = group_new(n, procs, ret_remote);
    free(procs);
    return err;
}

static int exchange_groups(struct bridge *b, struct group *group, struct holds *holds,
                           struct group **ret_remote)
{
    int n_remote = 0;
    cross(b, &group->size, 1, &n_remote, 1);
    if (error_of(b))
        return error_of(b);
    struct member *mine = members_of(group), *theirs = calloc((size_t)n_remote + 1, sizeof *theirs);
    int err = mine && theirs
                  ? MPI_SUCCESS
                  : err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes", n_remote);
    if (!err) {
        if (b->leads) {
            schedule_sendrecv(&b->leaders,
                              buffer_of(mine, (MPI_Count)group->size * MEMBER_WORDS, b->int_type),
                              b->remote_leader,
                              buffer_of(theirs, (MPI_Count)n_remote * MEMBER_WORDS, b->int_type),
                              b->remote_leader);
            name_connections(theirs, n_remote);
        }
        coll_bcast(&b->local, buffer_of(theirs, (MPI_Count)n_remote * MEMBER_WORDS, b->int_type),
                   b->local_leader);
        err = error_of(b);
    }
    bool several = false;
    for (int i = 0; !err && i < n_remote; i++)
        several |= theirs[i].job != mine[0].job;
    for (int i = 0; !err && i < group->size; i++)
        several |= mine[i].job != mine[0].job;
    if (!err)
        err = settle_members(group, theirs, n_remote, holds, ret_remote);
    if (several)
        err = all_succeeded(b, err);
    free(mine);
    free(theirs);
    return err;
}

/* The vote of context.c over two groups that have no common communicator yet. */
static int agree(struct bridge *b, int tag, uint32_t *ret_id)
{
    struct datatype *type = datatype_predefined(MPI_UINT64_T);
    struct op *band = op_predefined(MPI_BAND);
    struct context_try t;
    int rc;
    context_begin(&t, UINT32_MAX, tag);
    do {
        context_offer(&t);
        coll_allreduce(&b->local, MPI_IN_PLACE, buffer_of(t.vote, 2, type), band);
        if (b->leads) {
            uint64_t remote[2] = {0, 0};
            schedule_sendrecv(&b->leaders, buffer_of(t.vote, 2, type), b->remote_leader,
                              buffer_of(remote, 2, type), b->remote_leader);
            t.vote[0] &= remote[0];
            t.vote[1] &= remote[1];
        }
        coll_bcast(&b->local, buffer_of(t.vote, 2, type), b->local_leader);
        rc = error_of(b) ? error_of(b) : context_settle(&t);
    } while (rc == CONTEXT_AGAIN);
    if (rc)
        context_withdraw(&t);
    else
        *ret_id = t.id;
    return rc;
}

/* The steps that both ways of creation share, once the schedules of b are begun. Ends them. */
static int cross_bridge(struct bridge *b, int tag, const struct comm *parent, struct group *group,
                        struct comm **ret_newintercomm)
{
    struct group *remote = NULL;
    struct holds holds = {0};
    uint32_t id = 0;
    int err = exchange_groups(b, group, &holds, &remote);
    if (!err)
        err = agree(b, tag, &id);
    if (b->leads)
        schedule_end(&b->leaders);
    schedule_end(&b->local);
    if (!err)
        err = create_published(id, parent, group, remote, ret_newintercomm);
    group_unref(remote);
    release_holds(&holds);
    return err;
}

static int check_leaders(const struct comm *local_comm, int local_leader,
                         const struct comm *peer_comm, int remote_leader)
{
    if (comm_is_inter(local_comm))
        return err_set(MPI_ERR_COMM, "local_comm (%s) is an intercommunicator", local_comm->name);
    if (local_leader < 0 || local_leader >= local_comm->size)
        return err_set(MPI_ERR_RANK, "local_leader is %d, not in 0..%d", local_leader,
                       local_comm->size - 1);
    if (local_leader != local_comm->rank)
        return MPI_SUCCESS;
    if (!peer_comm)
        return err_set(MPI_ERR_COMM, "peer_comm is MPI_COMM_NULL at the leader");
    int n_peers = comm_remote_size(peer_comm);
    if (remote_leader < 0 || remote_leader >= n_peers)
        return err_set(MPI_ERR_RANK, "remote_leader is %d, not in 0..%d", remote_leader,
                       n_peers - 1);
    return MPI_SUCCESS;
}

int inter_meet(struct comm *local_comm, int local_leader, struct comm *peer_comm, int tag,
               struct comm **ret_newintercomm)
{
    struct bridge b = {.local_leader = local_leader,
                       .leads = local_leader == local_comm->rank,
                       .int_type = datatype_predefined(MPI_INT)};
    schedule_begin(&b.local, local_comm, coll_next_tag(local_comm));
    if (b.leads)
        schedule_begin(&b.leaders, peer_comm, coll_group_tag(tag));
    return cross_bridge(&b, tag, local_comm, local_comm->group, ret_newintercomm);
}

int mpi_intercomm_create(struct comm *local_comm, int local_leader, struct comm *peer_comm,
                         int remote_leader, int tag, struct comm **ret_newintercomm)
{
    int err = check_leaders(local_comm, local_leader, peer_comm, remote_leader);
    if (err)
        return err;
    struct bridge b = {.local_leader = local_leader,
                       .remote_leader = remote_leader,
                       .leads = local_leader == local_comm->rank,
                       .int_type = datatype_predefined(MPI_INT)};
    schedule_begin(&b.local, local_comm, coll_next_tag(local_comm));
    if (b.leads)
        schedule_begin(&b.leaders, peer_comm, coll_group_tag(tag));
    return cross_bridge(&b, tag, local_comm, local_comm->group, ret_newintercomm);
}

/* Without communicators: MPI_COMM_WORLD carries the messages, the string is the tag. */
int mpi_intercomm_create_from_groups(struct group *local_group, int local_leader,
                                     struct group *remote_group, int remote_leader,
                                     const char *stringtag, struct info *info,
                                     struct errhandler *errhandler, struct comm **ret_newintercomm)
{
    if (local_group->rank == MPI_UNDEFINED)
        return err_set(MPI_ERR_GROUP, "this process is no member of local_group");
    if (local_leader < 0 || local_leader >= local_group->size)
        return err_set(MPI_ERR_RANK, "local_leader is %d, not in 0..%d", local_leader,
                       local_group->size - 1);
    bool leads = local_group->rank == local_leader;
    if (leads && (remote_leader < 0 || remote_leader >= remote_group->size))
        return err_set(MPI_ERR_RANK, "remote_leader is %d, not in 0..%d", remote_leader,
                       remote_group->size - 1);
    int tag = create_tag_of(stringtag);
    struct bridge b = {.local_leader = local_leader,
                       .remote_leader = leads ? remote_group->procs[remote_leader] : -1,
                       .leads = leads,
                       .int_type = datatype_predefined(MPI_INT)};
    schedule_begin(&b.local, comm_here->world, coll_group_tag(tag));
    schedule_enter(&b.local, (struct schedule_view){comm_here->world, local_group->rank,
                                                    local_group->size, local_group->procs});
    if (leads)
        schedule_begin(&b.leaders, comm_here->world, coll_group_tag(tag));
    int err = cross_bridge(&b, tag, comm_here->world, local_group, ret_newintercomm);
    return err ? err : create_dress(*ret_newintercomm, info, errhandler);
}

/* ---- merge ---- */

/* Whether the local group comes first: `high` decides, and where both groups say the same the lower
 * job and rank in it of the first members, which both sides know (MPI-5.0 section 7.6.2 leaves this
 * order open). */
static bool comes_first(const struct comm *inter, int high, int remote_high)
{
    if ((high != 0) != (remote_high != 0))
        return !high;
    uint64_t own_job, remote_job;
    int64_t own = process_name(inter->group->procs[0], &own_job),
            remote = process_name(inter->remote_group->procs[0], &remote_job);
    return own_job != remote_job ? own_job < remote_job : own < remote;
}

static int join(const struct group *first, const struct group *second, struct group **ret_group)
{
    int *procs = malloc(((size_t)first->size + (size_t)second->size) * sizeof(int));
    if (!procs)
        return err_set(MPI_ERR_NO_MEM, "no memory for a group of %d processes",
                       first->size + second->size);
    memcpy(procs, first->procs, (size_t)first->size * sizeof(int));
    memcpy(procs + first->size, second->procs, (size_t)second->size * sizeof(int));
    int err = group_new(first->size + second->size, procs, ret_group);
    free(procs);
    return err;
}

int mpi_intercomm_merge(struct comm *intercomm, int high, struct comm **ret_newintracomm)
{
    if (!comm_is_inter(intercomm))
        return err_set(MPI_ERR_COMM, "%s is an intracommunicator", intercomm->name);
    struct datatype *int_type = datatype_predefined(MPI_INT);
    struct comm *local = intercomm->local_comm;
    struct schedule s;
    int remote_high = 0;
    uint32_t id = 0;
    schedule_begin(&s, intercomm, coll_next_tag(intercomm));
    if (local->rank == 0)
        schedule_sendrecv(&s, buffer_of(&high, 1, int_type), 0,
                          buffer_of(&remote_high, 1, int_type), 0);
    struct schedule_view inter =
        schedule_enter(&s, (struct schedule_view){local, local->rank, local->size, NULL});
    coll_bcast(&s, buffer_of(&remote_high, 1, int_type), 0);
    schedule_leave(&s, inter);
    int err = s.err ? s.err : context_agree(&s, &id);
    int end = schedule_end(&s);
    if (err || end)
        return err ? err : end;
    bool first = comes_first(intercomm, high, remote_high);
    struct group *group;
    err = join(first ? intercomm->group : intercomm->remote_group,
               first ? intercomm->remote_group : intercomm->group, &group);
    if (err) {
        context_give_back(id);
        return err;
    }
    err = create_published(id, intercomm, group, NULL, ret_newintracomm);
    group_unref(group);
    return err;
}
