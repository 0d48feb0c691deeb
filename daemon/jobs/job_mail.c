/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job_mail.h"

#include "daemon/jobs/dynamic/foreign.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "proto/control.pb-c.h"

static void job_mail_stdio(struct jobs *jobs, struct manager *manager, uint32_t src,
                           const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    Motet__Stdio *msg = motet__stdio__unpack(NULL, len, body);

    if (!msg)
        return;
    if (msg->stream == 0)
        jobs_on_stdin(jobs, src, msg);
    else
        manager_on_stdio(manager, src, msg, now_ns);
    motet__stdio__free_unpacked(msg, NULL);
}

static void job_mail_window(struct jobs *jobs, struct manager *manager, uint32_t src,
                            const uint8_t *body, uint32_t len)
{
    Motet__StdioWindow *msg = motet__stdio_window__unpack(NULL, len, body);

    if (!msg)
        return;
    if (msg->stream == 0)
        manager_on_stdin_window(manager, src, msg);
    else
        jobs_on_window(jobs, src, msg);
    motet__stdio_window__free_unpacked(msg, NULL);
}

static void job_mail_to_manager(struct jobs *jobs, struct manager *manager, uint32_t src,
                                uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    if (type == MOTET__FRAME_TYPE__LAUNCHED) {
        Motet__Launched *msg = motet__launched__unpack(NULL, len, body);
        if (msg) {
            /* Of a job that has both its home and ranks here, this node may be two places of the
             * tree; a child is below one of them. */
            manager_on_launched(manager, src, msg, now_ns);
            jobs_on_launched(jobs, src, msg, now_ns);
            motet__launched__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__RANK_EXIT) {
        Motet__RankExit *msg = motet__rank_exit__unpack(NULL, len, body);
        if (msg) {
            manager_on_rank_exit(manager, src, msg, now_ns);
            motet__rank_exit__free_unpacked(msg, NULL);
        }
    } else {
        Motet__Abort *msg = motet__abort__unpack(NULL, len, body);
        if (msg) {
            manager_on_abort(manager, src, msg, now_ns);
            motet__abort__free_unpacked(msg, NULL);
        }
    }
}

static void job_mail_connections(struct jobs *jobs, struct manager *manager, uint32_t src,
                                 uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    if (type == MOTET__FRAME_TYPE__CONNECT) {
        Motet__Connect *msg = motet__connect__unpack(NULL, len, body);
        if (msg) {
            foreign_on_connect(jobs, src, msg, now_ns);
            motet__connect__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__PEER_OVER) {
        Motet__PeerOver *msg = motet__peer_over__unpack(NULL, len, body);
        if (msg) {
            foreign_on_peer_over(jobs, src, msg, now_ns);
            motet__peer_over__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__ASK) {
        Motet__Ask *msg = motet__ask__unpack(NULL, len, body);
        if (msg) {
            manager_on_ask(manager, src, msg, now_ns);
            motet__ask__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__ANSWERED) {
        Motet__Answered *msg = motet__answered__unpack(NULL, len, body);
        if (msg) {
            foreign_on_answered(jobs, src, msg);
            motet__answered__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__CLAIM) {
        Motet__Claim *msg = motet__claim__unpack(NULL, len, body);
        if (msg) {
            manager_on_claim(manager, src, msg, now_ns);
            motet__claim__free_unpacked(msg, NULL);
        }
    } else {
        Motet__SpawnJob *msg = motet__spawn_job__unpack(NULL, len, body);
        if (msg) {
            manager_on_spawn_job(manager, src, msg, now_ns);
            motet__spawn_job__free_unpacked(msg, NULL);
        }
    }
}

bool job_mail_deliver(struct jobs *jobs, struct manager *manager, uint32_t src, uint16_t type,
                      const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    switch (type) {
    case MOTET__FRAME_TYPE__LAUNCH:
        jobs_on_launch(jobs, src, body, len, now_ns);
        return true;
    case MOTET__FRAME_TYPE__START:
        jobs_on_start(jobs, src, body, len, now_ns);
        return true;
    case MOTET__FRAME_TYPE__KILL:
        jobs_on_kill(jobs, src, body, len, now_ns);
        return true;
    case MOTET__FRAME_TYPE__JOB_END:
        jobs_on_job_end(jobs, src, body, len);
        return true;
    case MOTET__FRAME_TYPE__STDIO:
        job_mail_stdio(jobs, manager, src, body, len, now_ns);
        return true;
    case MOTET__FRAME_TYPE__STDIO_WINDOW:
        job_mail_window(jobs, manager, src, body, len);
        return true;
    case MOTET__FRAME_TYPE__LAUNCHED:
    case MOTET__FRAME_TYPE__RANK_EXIT:
    case MOTET__FRAME_TYPE__ABORT:
        job_mail_to_manager(jobs, manager, src, type, body, len, now_ns);
        return true;
    case MOTET__FRAME_TYPE__CONNECT:
    case MOTET__FRAME_TYPE__CLAIM:
    case MOTET__FRAME_TYPE__PEER_OVER:
    case MOTET__FRAME_TYPE__SPAWN_JOB:
    case MOTET__FRAME_TYPE__ASK:
    case MOTET__FRAME_TYPE__ANSWERED:
        job_mail_connections(jobs, manager, src, type, body, len, now_ns);
        return true;
    default:
        return false;
    }
}
