/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether MPI may be called: read by every binding, set by initialization and finalization.
 *
 * Also the switch of the argument checks (MOTET_CHECK=0 turns them off), so that a binding reads
 * one cache line, and of the checking mode of collectives.
 */
#ifndef MOTET_CLIENT_PROCESS_PHASE_H
#define MOTET_CLIENT_PROCESS_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum phase {
    PHASE_BEFORE = 0, /* neither MPI_Init nor a session so far */
    PHASE_ACTIVE,
    PHASE_FINALIZED
};

struct phase_state {
    uint8_t now; /* enum phase: active while the world model or any session is */
    bool checks;
    bool check_collectives; /* MOTET_CHECK=collectives */
    uint8_t world;          /* enum phase, of MPI_Init and MPI_Finalize alone */
};
extern struct phase_state *phase_here;

void phase_set(enum phase phase);
/* Reads MOTET_CHECK (again). */
void phase_read_checks(void);

static inline enum phase phase_now(void)
{
    return (enum phase)phase_here->now;
}

/* Ends the job with a message when `function` was called too early or too late. Returns when
 * called in PHASE_ACTIVE. */
void phase_refuse(const char *function);

#endif
