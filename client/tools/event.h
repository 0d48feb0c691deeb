/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events (MPI-5.0 section 15.3.8). Whoever notices one (client/progress/notice.h) is in the middle
 * of something, perhaps with the lock of one vci alone. So an event is noted in a queue with its
 * time, and callbacks are called by the next look at progress with the library lock, where they may
 * call what they like. An event that finds the queue full is dropped and counted.
 *
 *   event_note() -- any thread, any lock --> queue --> event_deliver(), library lock --> callbacks
 *
 * Where the application has several threads, a callback may be called by any of them, and so must
 * have been registered as thread-safe at least; one that was not never hears of the event, which
 * counts as dropped. The helper thread calls none.
 */
#ifndef MOTET_CLIENT_TOOLS_EVENT_H
#define MOTET_CLIENT_TOOLS_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/progress/notice.h"
#include "client/tools/category.h"
#include "client/tools/tools.h"
#include "mpi.h"

/* What the data of an event look like, copied whole: MPI_T_event_copy. */
struct event_data {
    int peer;
    int tag;
    MPI_Count amount;
};

struct event_element {
    MPI_Datatype datatype;
    MPI_Aint displacement; /* in struct event_data */
    size_t n_bytes;
};

/* One for each notice. */
struct event {
    const char *name, *desc;
    enum category_index category;
    int verbosity, bind;
    const struct event_element *elements;
    int n_elements;
};
extern const struct event event_table[];
extern const int event_n;

#define EVENT_LEVELS 4 /* of callback safety, from MPI_T_CB_REQUIRE_NONE up */

struct event_registration {
    MPI_T_event_registration handle;
    enum notice notice;
    struct tools_bound bound;
    uint32_t context; /* of the communicator it is bound to */
    uint64_t since_ns;
    MPI_T_event_cb_function *callbacks[EVENT_LEVELS];
    void *user_data[EVENT_LEVELS];
    MPI_T_event_dropped_cb_function *dropped_fn;
    uint64_t n_dropped; /* since it was last told; of the queue: with its mutex */
};

struct event_instance {
    uint64_t ns;
    enum notice notice;
    struct event_data data;
};

/* Level of a safety requirement, or -1. */
int event_level(MPI_T_cb_safety safety);

/* ---- event_queue.c ---- */

/* Notices are noted while there is a registration. */
void event_listen(void);
void event_deafen(void);
/* Calls callbacks for what was noted so far. Returns how many events. */
int event_deliver(void);
/* No other registration is looked at by who notes. */
void event_queue_add(struct event_registration *registration);
void event_queue_remove(struct event_registration *registration);
bool event_queue_is_full(void);

/* The tool interface ends: nobody listens any more. */
void event_stop(void);

#endif
