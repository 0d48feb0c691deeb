/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells from outside what this rank does (proto/calls.h): which communicators it has and how many
 * collectives it has entered on each, which collectives run, and which calls its threads wait in.
 *
 * The bindings of functions that may wait note their name for the thread; nothing else happens
 * until a wait has found nothing for some microseconds (progress), which then shows the call it
 * belongs to. The short path pays for two stores, a collective for three.
 */
#ifndef MOTET_CLIENT_PROGRESS_CALLS_H
#define MOTET_CLIENT_PROGRESS_CALLS_H

#include <stdint.h>

#include "proto/calls.h"

struct comm;

/* The call that this thread is in, or was in last. */
struct calls_now {
    const char *function; /* NULL: none so far */
    uint32_t context, form,
        sequence; /* the collective that it entered last in it; sequence 0: none */
};
extern _Thread_local struct calls_now calls_now __attribute__((tls_model("initial-exec")));

/* A function that may wait, or starts a collective, begins. `function` stays valid. */
static inline void calls_enter(const char *function)
{
    calls_now.function = function;
    calls_now.sequence = 0;
}

/* This thread's function enters its next collective of this form on the communicator. */
void calls_collective(struct comm *comm, enum calls_form form, uint32_t sequence);

/* Shows that this thread waits in its function; *record was NULL, and stays so when no entry is
 * free. */
void calls_show(struct calls_record **record);
/* Shows a collective that runs, whichever thread waits for it. */
void calls_show_running(struct calls_record **record, const char *function, const struct comm *comm,
                        enum calls_form form, uint32_t sequence);
/* *record may be NULL and is NULL afterwards. */
void calls_hide(struct calls_record **record);

/* Shows a communicator from its creation to its end, and its name. */
void calls_comm_add(struct comm *comm);
void calls_comm_name(const struct comm *comm);
void calls_comm_remove(struct comm *comm);

#endif
