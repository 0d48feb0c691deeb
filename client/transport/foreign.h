/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections with other jobs as a rank sees them: the daemon makes the other job's ranks peers,
 * numbered behind those of its own job, for as long as the rank has use for them. Communicators
 * count that use (client/object/comm.c). With the library lock held.
 *
 * Asking the daemon takes a while: a request is begun, and answered in foreign_poll(), which is
 * called while foreign_here->n_waiting is not 0.
 */
#ifndef MOTET_CLIENT_TRANSPORT_FOREIGN_H
#define MOTET_CLIENT_TRANSPORT_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/attach.h"

struct foreign {
    uint64_t number; /* of the connection, equal on all ranks of the job */
    uint64_t job;    /* at the other end */
    uint32_t first, n;
    int refs; /* 0: given back; its peers are kept until their numbers are others' */
};

/* A question to the daemon, of the one who waits for its answer. */
struct foreign_request {
    struct list link;
    uint16_t answer; /* type of the frame */
    uint64_t id;     /* connection or request in it */
    bool done;       /* claimed and spawned hold the answer */
    struct attach_claimed claimed;
    struct attach_spawned spawned;
};

struct foreign_state {
    struct foreign **table;
    uint32_t n, n_alive; /* in the table; with references */
    int n_waiting;
    struct list requests;
    uint32_t last_request;
    uint8_t stamps[SEGMENT_MAX_FOREIGN];        /* of which use is what is kept of the peer */
    void (*forget)(uint32_t first, uint32_t n); /* what is kept of these peers is out of date */
};
extern struct foreign_state *foreign_here;

/* A message with this source has come from a channel: the source without its stamp, or UINT32_MAX
 * when it is not to be believed: it does not exist, or the number is another process's by now. */
uint32_t foreign_source(uint32_t stamped);
/* Numbers that peers may have, with those of other jobs. */
uint32_t foreign_n_peers(void);

/* The connection of a peer; NULL: a rank of the own job. */
struct foreign *foreign_of(uint32_t peer);
/* The one with a job that is in use here, or NULL. */
struct foreign *foreign_with_job(uint64_t job);

/* Asks for a connection by number. 0, or negative errno: the daemon is gone. When it is done
 * without error, foreign_claimed() gives the connection, with a reference for the caller; NULL: no
 * memory. */
int foreign_claim(uint64_t number, struct foreign_request *ret_request);
struct foreign *foreign_claimed(const struct foreign_request *request);
/* References; the last one gives the connection back. */
void foreign_ref(struct foreign *foreign);
void foreign_unref(struct foreign *foreign);

/* Sends an order to start a job: body begins with a struct attach_spawn, whose number is set here.
 * When it is done without error, foreign_spawned() gives the connection, as foreign_claimed() does.
 * The answer may come twice: ask again with foreign_again() for the second one. */
int foreign_spawn(void *body, uint32_t len, struct foreign_request *ret_request);
/* Sends a question about ports and names, whose number is set here. One that has connected or
 * accepted gets the connection by foreign_spawned(), unless the other is of the same job (n 0). */
int foreign_ask_daemon(struct attach_ask *body, struct foreign_request *ret_request);
struct foreign *foreign_spawned(const struct foreign_request *request);
void foreign_again(struct foreign_request *request);
/* The job has answered; or nobody waits for it any more. */
int foreign_spawn_done(struct foreign_request *request);
void foreign_request_end(struct foreign_request *request);

/* Takes the daemon's answers. Returns how many. */
int foreign_poll(void);

#endif
