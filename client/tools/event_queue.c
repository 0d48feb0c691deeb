/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/event.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/lock/lock.h"
#include "client/progress/async.h"
#include "client/progress/progress.h"

/* A burst of unexpected messages between two looks at progress: a ring's worth of each peer. */
#define EVENT_ROOM              1024u
#define EVENT_MAX_REGISTRATIONS 64

struct event_noted {
    struct event_instance instance;
    uint32_t context;
};

struct event_queue {
    pthread_mutex_t mutex; /* of all below but `delivering` and `n_listening` */
    struct event_noted noted[EVENT_ROOM];
    uint32_t first, n; /* of the ring */
    struct event_registration *registrations[EVENT_MAX_REGISTRATIONS];
    int n_registrations;
    int n_listening; /* registrations, for progress; library lock */
    bool delivering;
};
static struct event_queue event_queue_first;
static struct event_queue *event_queue_here = &event_queue_first;

static void event_queue_part_init(void)
{
    pthread_mutex_init(&event_queue_here->mutex, NULL);
}
CLIENT_PART(event_queue_here, event_queue_first, .init = event_queue_part_init);

static bool event_concerns(const struct event_registration *r, const struct event_noted *e)
{
    return r->notice == e->instance.notice && e->instance.ns >= r->since_ns &&
           (r->bound.bind == MPI_T_BIND_NO_OBJECT || r->context == e->context);
}

/* ---- noting ---- */

static void event_drop(const struct event_noted *e)
{
    for (int i = 0; i < event_queue_here->n_registrations; i++)
        if (event_concerns(event_queue_here->registrations[i], e))
            event_queue_here->registrations[i]->n_dropped++;
}

static bool event_is_wanted(const struct event_noted *e)
{
    for (int i = 0; i < event_queue_here->n_registrations; i++)
        if (event_concerns(event_queue_here->registrations[i], e))
            return true;
    return false;
}

static void event_note(enum notice notice, uint32_t context, int peer, int tag, int64_t amount)
{
    struct event_queue *q = event_queue_here;

    pthread_mutex_lock(&q->mutex);
    /* The time within the mutex: so the queue is in its order. */
    struct event_noted e = {
        .instance = {.ns = clock_now_ns(), .notice = notice, .data = {peer, tag, amount}},
        .context = context};
    if (event_is_wanted(&e)) {
        if (q->n < EVENT_ROOM)
            q->noted[(q->first + q->n++) % EVENT_ROOM] = e;
        else
            event_drop(&e);
    }
    pthread_mutex_unlock(&q->mutex);
}

void event_queue_add(struct event_registration *registration)
{
    pthread_mutex_lock(&event_queue_here->mutex);
    if (event_queue_here->n_registrations < EVENT_MAX_REGISTRATIONS)
        event_queue_here->registrations[event_queue_here->n_registrations++] = registration;
    pthread_mutex_unlock(&event_queue_here->mutex);
}

void event_queue_remove(struct event_registration *registration)
{
    struct event_queue *q = event_queue_here;

    pthread_mutex_lock(&q->mutex);
    for (int i = 0; i < q->n_registrations; i++)
        if (q->registrations[i] == registration) {
            q->registrations[i] = q->registrations[--q->n_registrations];
            break;
        }
    pthread_mutex_unlock(&q->mutex);
}

bool event_queue_is_full(void)
{
    return event_queue_here->n_registrations == EVENT_MAX_REGISTRATIONS;
}

/* ---- delivering ---- */

static MPI_T_cb_safety event_safety_here(void)
{
    return lock_here->multiple ? MPI_T_CB_REQUIRE_THREAD_SAFE : MPI_T_CB_REQUIRE_NONE;
}

/* The callback with the least promise that is enough. */
static int event_callback_for(const struct event_registration *r, MPI_T_cb_safety safety)
{
    for (int level = event_level(safety); level < EVENT_LEVELS; level++)
        if (r->callbacks[level])
            return level;
    return -1;
}

static uint64_t event_take_dropped(struct event_registration *r)
{
    pthread_mutex_lock(&event_queue_here->mutex);
    uint64_t n = r->n_dropped;
    r->n_dropped = 0;
    pthread_mutex_unlock(&event_queue_here->mutex);
    return n;
}

static void event_deliver_to(struct event_registration *r, struct event_instance *instance)
{
    MPI_T_cb_safety safety = event_safety_here();
    int level = event_callback_for(r, safety);

    if (level < 0) {
        r->n_dropped++;
        return;
    }
    MPI_T_event_registration handle = r->handle;
    if (r->dropped_fn) {
        uint64_t n = event_take_dropped(r);
        if (n > 0)
            r->dropped_fn((MPI_Count)n, handle, 0, safety, r->user_data[level]);
        if (tools_get(REGISTRY_REGISTRATION, handle) != r || !r->callbacks[level])
            return; /* the callback has freed it */
    }
    MPI_T_event_instance made = tools_add(REGISTRY_INSTANCE, instance);
    if (!made)
        return;
    r->callbacks[level](made, handle, safety, r->user_data[level]);
    tools_remove(REGISTRY_INSTANCE, made);
}

static bool event_take(struct event_noted *ret_e)
{
    struct event_queue *q = event_queue_here;

    pthread_mutex_lock(&q->mutex);
    bool any = q->n > 0;
    if (any) {
        *ret_e = q->noted[q->first];
        q->first = (q->first + 1) % EVENT_ROOM;
        q->n--;
    }
    pthread_mutex_unlock(&q->mutex);
    return any;
}

static bool event_is_helper(void)
{
    return async_here->state == ASYNC_RUNS && pthread_equal(async_here->thread, pthread_self());
}

int event_deliver(void)
{
    struct event_noted e;
    int n = 0;

    if (event_queue_here->delivering || event_is_helper())
        return 0;
    event_queue_here->delivering = true;
    /* As many as fit in: a callback may cause further events without end. */
    while (n < (int)EVENT_ROOM && event_take(&e)) {
        const struct registry *all = &tools_here->handles[REGISTRY_REGISTRATION];
        for (uint32_t i = 0; i < all->n; i++) {
            struct event_registration *r = all->entries[i].object;
            if (r && event_concerns(r, &e))
                event_deliver_to(r, &e.instance);
        }
        n++;
    }
    event_queue_here->delivering = false;
    return n;
}

void event_listen(void)
{
    if (event_queue_here->n_listening++ == 0)
        progress_register(event_deliver, &event_queue_here->n_listening, false);
    notice_here->fn = event_note;
}

void event_deafen(void)
{
    if (--event_queue_here->n_listening == 0)
        notice_here->fn = NULL;
}

void event_stop(void)
{
    pthread_mutex_lock(&event_queue_here->mutex);
    event_queue_here->n = 0;
    event_queue_here->n_registrations = 0;
    pthread_mutex_unlock(&event_queue_here->mutex);
    event_queue_here->n_listening = 0;
    notice_here->fn = NULL;
}
