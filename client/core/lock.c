/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mutex alone would starve: the thread that polls unlocks and locks again before a woken waiter runs. So waiting
 * threads are counted, and lock_give_turn() stays out until one of those it saw waiting has had the lock. A thread that
 * waits may itself be polling; turns then alternate.
 */
#include "client/core/lock.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>

bool lock_threaded;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;  /* the lock was given up */
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER; /* somebody else took the lock */
static bool held;                                        /* all below: protected by mutex */
static pthread_t owner;
static int depth;
static int n_waiting;
static uint64_t n_taken;

void lock_init(bool threaded)
{
    lock_threaded = threaded;
}

/* With the mutex held. */
static void take_at_depth(int new_depth)
{
    n_waiting++;
    while (held)
        pthread_cond_wait(&freed, &mutex);
    n_waiting--;
    held = true;
    owner = pthread_self();
    depth = new_depth;
    n_taken++;
    pthread_cond_broadcast(&passed);
}

/* With the mutex held. */
static void give_all(void)
{
    held = false;
    depth = 0;
    pthread_cond_signal(&freed);
}

void lock_take(void)
{
    pthread_mutex_lock(&mutex);
    if (held && pthread_equal(owner, pthread_self()))
        depth++;
    else
        take_at_depth(1);
    pthread_mutex_unlock(&mutex);
}

void lock_give(void)
{
    pthread_mutex_lock(&mutex);
    assert(held && pthread_equal(owner, pthread_self()));
    if (--depth == 0)
        give_all();
    pthread_mutex_unlock(&mutex);
}

void lock_give_turn(void)
{
    int was;

    pthread_mutex_lock(&mutex);
    assert(held && pthread_equal(owner, pthread_self()));
    if (n_waiting) {
        uint64_t before = n_taken;

        was = depth;
        give_all();
        while (n_taken == before)
            pthread_cond_wait(&passed, &mutex);
        take_at_depth(was);
    }
    pthread_mutex_unlock(&mutex);
}

int lock_release(void)
{
    int was = 0;

    if (!lock_threaded)
        return 0;
    pthread_mutex_lock(&mutex);
    if (held && pthread_equal(owner, pthread_self())) {
        was = depth;
        give_all();
    }
    pthread_mutex_unlock(&mutex);
    return was;
}

void lock_resume(int was)
{
    if (was == 0)
        return;
    pthread_mutex_lock(&mutex);
    take_at_depth(was);
    pthread_mutex_unlock(&mutex);
}
