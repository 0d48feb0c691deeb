/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/dynamic/foreign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/jobs/dynamic/spawn_request.h"
#include "daemon/jobs/job.h"

static void bits_set(uint64_t *bits, uint32_t i, bool on)
{
    if (on)
        bits[i / 64] |= UINT64_C(1) << i % 64;
    else
        bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static bool bits_any(const uint64_t *bits)
{
    uint64_t any = 0;

    for (uint32_t w = 0; w < SEGMENT_MAX_LOCAL / 64; w++)
        any |= bits[w];
    return any != 0;
}

static struct foreign *foreign_find(struct job *job, uint64_t number)
{
    list_foreach(it, &job->foreign) {
        struct foreign *f = list_entry(it, struct foreign, link);
        if (f->number == number)
            return f;
    }
    return NULL;
}

static struct foreign *foreign_new(struct job *job, uint64_t number)
{
    struct foreign *f = job->n_foreign < FOREIGN_MAX_CONNECTIONS ? calloc(1, sizeof *f) : NULL;

    if (!f)
        return NULL;
    f->number = number;
    list_init(&f->link);
    list_append(&job->foreign, &f->link);
    job->n_foreign++;
    return f;
}

static void foreign_free(struct job *job, struct foreign *f)
{
    list_remove(&f->link);
    job->n_foreign--;
    free(f);
}

void foreign_free_all(struct job *job)
{
    list_foreach_safe(it, &job->foreign)
        foreign_free(job, list_entry(it, struct foreign, link));
}

/* The lowest n peers in a row that are nobody's, or UINT32_MAX. */
static uint32_t foreign_find_room(const struct job *job, uint32_t n)
{
    const struct segment_shape *s = &job->layout.shape;
    uint32_t at = s->n_world;
    bool moved = true;

    if (n > s->n_foreign)
        return UINT32_MAX;
    while (moved) {
        moved = false;
        list_foreach(it, &job->foreign) {
            const struct foreign *f = list_entry(it, struct foreign, link);
            if (f->n > 0 && at < f->first + f->n && f->first < at + n) {
                at = f->first + f->n;
                moved = true;
            }
        }
    }
    return at - s->n_world <= s->n_foreign - n ? at : UINT32_MAX;
}

/* ---- answers to ranks ---- */

static void foreign_to_rank(struct job *job, uint32_t local, uint16_t type, const void *body,
                            uint32_t len)
{
    const struct jobs_setup *setup = jobs_setup_of(job->jobs);

    if (job->ranks[local].client)
        setup->ops->to_rank(setup->ctx, job->ranks[local].client, type, body, len);
}

static void foreign_refuse_spawn(struct job *job, uint32_t local, uint32_t request,
                                 const char *error)
{
    struct attach_spawned reply = {.request = request, .error = 1};

    snprintf(reply.text, sizeof reply.text, "%s", error);
    foreign_to_rank(job, local, ATTACH_SPAWNED, &reply, sizeof reply);
}

static void foreign_say_spawned(struct job *job, uint32_t local, const struct foreign *f,
                                uint32_t peer_rank)
{
    const struct attach_spawned reply = {.request = f->request,
                                         .connection = f->number,
                                         .job = f->peer_job,
                                         .first = f->first,
                                         .n = f->n,
                                         .peer_rank = peer_rank};

    foreign_to_rank(job, local, ATTACH_SPAWNED, &reply, sizeof reply);
}

static void foreign_say_claimed(struct job *job, uint32_t local, const struct foreign *f,
                                const char *error)
{
    struct attach_claimed reply = {.connection = f->number,
                                   .job = f->peer_job,
                                   .error = error != NULL,
                                   .first = f->first,
                                   .n = f->n};

    snprintf(reply.text, sizeof reply.text, "%s", error ? error : "");
    foreign_to_rank(job, local, ATTACH_CLAIMED, &reply, sizeof reply);
}

/* All who wait for the connection hear how it is. */
static void foreign_answer_claims(struct job *job, struct foreign *f, const char *error)
{
    for (uint32_t r = 0; r < job->n_local; r++) {
        if (!(f->waiting[r / 64] >> r % 64 & 1))
            continue;
        bits_set(f->waiting, r, false);
        if (!error)
            bits_set(f->users, r, true);
        foreign_say_claimed(job, r, f, error);
    }
}

/* ---- the home ---- */

static void foreign_tell_home(struct job *job, const struct foreign *f, bool held, uint64_t now_ns)
{
    Motet__Claim msg = MOTET__CLAIM__INIT;

    msg.job = job->id;
    msg.number = f->number;
    msg.held = held;
    job_to_home(job, MOTET__FRAME_TYPE__CLAIM, &msg.base, now_ns);
}

/* Before whatever the node says of the connection from now on. */
static void foreign_tell_begun(struct job *job, const struct foreign *f, uint64_t now_ns)
{
    Motet__Claim msg = MOTET__CLAIM__INIT;

    msg.job = job->id;
    msg.number = f->number;
    msg.held = bits_any(f->users);
    msg.has_begun = true;
    msg.begun = true;
    job_to_home(job, MOTET__FRAME_TYPE__CLAIM, &msg.base, now_ns);
}

/* ---- opening and leaving ---- */

static int foreign_open(struct job *job, struct foreign *f, const Motet__Connect *msg, char *error,
                        size_t size)
{
    const struct jobs_setup *setup = jobs_setup_of(job->jobs);
    uint64_t n = 0;

    for (size_t i = 0; i < msg->n_placements; i++)
        n += msg->placements[i]->n_ranks;
    uint32_t first =
        n > 0 && n <= SEGMENT_MAX_FOREIGN ? foreign_find_room(job, (uint32_t)n) : UINT32_MAX;
    if (first == UINT32_MAX) {
        snprintf(error, size,
                 "node %s has no room for %llu more processes of other jobs: %u is the most",
                 job->node_name, (unsigned long long)n, job->layout.shape.n_foreign);
        return -ENOSPC;
    }
    f->first = first;
    f->n = (uint32_t)n;
    f->peer_job = msg->peer_job;
    int rc = setup->ops->connect(setup->ctx, job, f, msg, error, size);
    if (rc < 0) {
        f->n = 0;
        return rc;
    }
    f->state = FOREIGN_OPEN;
    return 0;
}

/* Nobody here or elsewhere has use for it. */
static void foreign_leave(struct job *job, struct foreign *f)
{
    const struct jobs_setup *setup = jobs_setup_of(job->jobs);

    if (f->state != FOREIGN_OPEN || !f->over || bits_any(f->users) || bits_any(f->waiting) ||
        f->request != 0 || job->state == JOB_CLOSING)
        return;
    f->state = FOREIGN_LEAVING;
    if (f->channels_left == 0)
        foreign_free(job, f);
    else
        setup->ops->disconnect(setup->ctx, job, f);
}

void foreign_on_removed(struct jobs *jobs, uint64_t id, uint64_t number, uint32_t channel)
{
    struct job *job = jobs_find(jobs, id);
    struct foreign *f = job ? foreign_find(job, number) : NULL;

    if (!f || channel >= HOP_MAX_CHANNELS || !f->channels[channel])
        return;
    jobs_setup_of(jobs)->ops->foreign_free(jobs_setup_of(jobs)->ctx, f->channels[channel]);
    f->channels[channel] = NULL;
    if (--f->channels_left == 0)
        foreign_free(job, f);
}

/* ---- from ranks ---- */

void foreign_on_spawn(struct job *job, uint32_t local, const uint8_t *body, uint32_t len,
                      uint64_t now_ns)
{
    struct spawn_request request;
    char error[200];

    if (spawn_request_parse(body, len, job, local, &request, error, sizeof error) < 0) {
        foreign_refuse_spawn(job, local, request.number, error);
        return;
    }
    Motet__SpawnJob msg = MOTET__SPAWN_JOB__INIT;
    msg.job = job->id;
    msg.rank = job->ranks[local].world;
    msg.request = request.number;
    msg.submit = &request.submit;
    job_to_home(job, MOTET__FRAME_TYPE__SPAWN_JOB, &msg.base, now_ns);
    spawn_request_free(&request);
}

void foreign_on_ask(struct job *job, uint32_t local, const struct attach_ask *ask, uint64_t now_ns)
{
    struct attach_ask own = *ask;
    Motet__Ask msg = MOTET__ASK__INIT;

    own.port[sizeof own.port - 1] = own.name[sizeof own.name - 1] = '\0';
    if (own.request == 0 || own.wish == 0 || own.wish >= ATTACH_N_WISHES) {
        foreign_refuse_spawn(job, local, own.request, "the request is not valid");
        return;
    }
    msg.job = job->id;
    msg.rank = job->ranks[local].world;
    msg.request = own.request;
    msg.wish = own.wish;
    msg.port = own.port;
    msg.name = own.name;
    msg.has_timeout_ms = own.timeout_ms != 0;
    msg.timeout_ms = own.timeout_ms;
    job_to_home(job, MOTET__FRAME_TYPE__ASK, &msg.base, now_ns);
}

void foreign_on_answered(struct jobs *jobs, uint32_t src_node, const Motet__Answered *msg)
{
    struct job *job = jobs_find(jobs, msg->job);
    int64_t local = job ? job_local_of(job, msg->rank) : -1;
    struct attach_spawned reply = {.request = msg->request,
                                   .error = msg->error,
                                   .connection = msg->number,
                                   .peer_rank = msg->peer_rank};

    if (local < 0 || job->home_node != src_node || job->state != JOB_RUNNING)
        return;
    struct foreign *f = msg->has_number ? foreign_find(job, msg->number) : NULL;
    if (f && f->request == msg->request) {
        foreign_say_spawned(job, (uint32_t)local, f, msg->peer_rank);
        f->request = 0;
        return;
    }
    reply.job = job->id;
    snprintf(reply.port, sizeof reply.port, "%s", msg->port ? msg->port : "");
    snprintf(reply.text, sizeof reply.text, "%s", msg->text ? msg->text : "");
    foreign_to_rank(job, (uint32_t)local, ATTACH_SPAWNED, &reply, sizeof reply);
}

static void foreign_fail_job(struct job *job, uint32_t local, int32_t code, const char *text,
                             uint64_t now_ns)
{
    job_on_abort(job, local, code, text, now_ns);
}

void foreign_on_spawn_done(struct job *job, uint32_t local, uint32_t request, uint64_t now_ns)
{
    list_foreach(it, &job->foreign) {
        struct foreign *f = list_entry(it, struct foreign, link);
        if (f->request != request || f->spawner != local || request == 0)
            continue;
        f->request = 0;
        foreign_tell_begun(job, f, now_ns);
        foreign_leave(job, f);
        return;
    }
    /* The rank was told that the job is over, and took its last message for the better news. */
    foreign_fail_job(job, local, 1, "the job that it has spawned ended while it began", now_ns);
}

void foreign_on_claim(struct job *job, uint32_t local, uint64_t number, uint64_t now_ns)
{
    struct foreign *f = foreign_find(job, number);

    if (f && (f->state == FOREIGN_LEAVING || f->over)) {
        foreign_say_claimed(job, local, f, "the connection is closed");
        return;
    }
    if (f && f->state == FOREIGN_OPEN && bits_any(f->users)) {
        bits_set(f->users, local, true);
        foreign_say_claimed(job, local, f, NULL);
        return;
    }
    if (!f) {
        f = foreign_new(job, number);
        if (!f) {
            const struct foreign none = {.number = number};
            foreign_say_claimed(job, local, &none,
                                "the job has too many connections with other jobs");
            return;
        }
    }
    /* The home counts the nodes that use it, and says whether there still is such a connection. */
    if (!bits_any(f->waiting))
        foreign_tell_home(job, f, true, now_ns);
    bits_set(f->waiting, local, true);
}

/* The rank does not use it any more. */
static void foreign_drop(struct job *job, struct foreign *f, uint32_t local, uint64_t now_ns)
{
    bool used = f->users[local / 64] >> local % 64 & 1;

    bits_set(f->waiting, local, false);
    bits_set(f->users, local, false);
    if (used && f->state == FOREIGN_OPEN && !bits_any(f->users) && !f->over)
        foreign_tell_home(job, f, false, now_ns);
    foreign_leave(job, f);
}

void foreign_on_release(struct job *job, uint32_t local, uint64_t number, uint64_t now_ns)
{
    struct foreign *f = foreign_find(job, number);

    if (f)
        foreign_drop(job, f, local, now_ns);
}

void foreign_forget_rank(struct job *job, uint32_t local, uint64_t now_ns)
{
    if (job->state != JOB_RUNNING)
        return;
    list_foreach_safe(it, &job->foreign) {
        struct foreign *f = list_entry(it, struct foreign, link);
        if (f->request != 0 && f->spawner == local)
            f->request = 0;
        foreign_drop(job, f, local, now_ns);
    }
}

/* ---- from the home ---- */

/* What the root of a spawn gets. */
static void foreign_spawned(struct job *job, const Motet__Connect *msg, uint64_t now_ns)
{
    int64_t local = job_local_of(job, msg->rank);
    struct foreign *f = foreign_find(job, msg->number);
    char error[200] = "";

    if (local < 0)
        return;
    if (!msg->ok) {
        if (f && f->request == msg->request) {
            f->request = 0;
            f->over = true;
        }
        foreign_refuse_spawn(job, (uint32_t)local, msg->request,
                             msg->error ? msg->error : "it was refused");
        if (f)
            foreign_drop(job, f, (uint32_t)local, now_ns);
        return;
    }
    f = f ? NULL : foreign_new(job, msg->number);
    int rc = f ? foreign_open(job, f, msg, error, sizeof error) : -ENOMEM;
    if (rc < 0) {
        foreign_refuse_spawn(job, (uint32_t)local, msg->request,
                             error[0] ? error : "the job has too many connections with other jobs");
        /* The home takes it for the word that nobody waits for the new job. */
        const struct foreign none = {.number = msg->number};
        foreign_tell_home(job, &none, false, now_ns);
        if (f)
            foreign_free(job, f);
        return;
    }
    f->spawner = (uint32_t)local;
    f->request = msg->request;
    bool gone = !job->ranks[local].client;
    bits_set(f->users, (uint32_t)local, !gone);
    foreign_tell_home(job, f, !gone, now_ns);
    /* Who meets over a port is told when the other node has done this, too. */
    if (!msg->has_peer_rank)
        foreign_say_spawned(job, (uint32_t)local, f, 0);
    if (gone)
        f->request = 0;
}

void foreign_on_connect(struct jobs *jobs, uint32_t src_node, const Motet__Connect *msg,
                        uint64_t now_ns)
{
    struct job *job = jobs_find(jobs, msg->job);
    char error[200] = "";

    if (!job || job->home_node != src_node || job->state != JOB_RUNNING)
        return;
    if (msg->has_request) {
        foreign_spawned(job, msg, now_ns);
        return;
    }
    struct foreign *f = foreign_find(job, msg->number);
    if (!f || f->state == FOREIGN_LEAVING)
        return;
    bool opened = msg->ok &&
                  (f->state == FOREIGN_OPEN || foreign_open(job, f, msg, error, sizeof error) == 0);
    foreign_answer_claims(job, f,
                          opened       ? NULL
                          : msg->ok    ? error
                          : msg->error ? msg->error
                                       : "there is no such connection");
    if (msg->ok && !bits_any(f->users))
        foreign_tell_home(job, f, false, now_ns);
    if (f->state == FOREIGN_ASKED)
        foreign_free(job, f);
    else
        foreign_leave(job, f);
}

void foreign_on_peer_over(struct jobs *jobs, uint32_t src_node, const Motet__PeerOver *msg,
                          uint64_t now_ns)
{
    struct job *job = jobs_find(jobs, msg->job);
    struct foreign *f = job ? foreign_find(job, msg->number) : NULL;

    if (!f || job->home_node != src_node || job->state != JOB_RUNNING || f->state != FOREIGN_OPEN)
        return;
    f->over = true;
    if (f->request != 0) {
        uint32_t request = f->request;
        f->request = 0;
        foreign_refuse_spawn(job, f->spawner, request, msg->text ? msg->text : "it ended");
        foreign_drop(job, f, f->spawner, now_ns);
        return;
    }
    for (uint32_t r = 0; msg->failed && r < job->n_local; r++)
        if (f->users[r / 64] >> r % 64 & 1) {
            foreign_fail_job(job, r, msg->has_code ? msg->code : 1,
                             msg->text ? msg->text : "a connected job failed", now_ns);
            break;
        }
    foreign_leave(job, f);
}
