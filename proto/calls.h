/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank is doing, as seen from outside: the calls that its threads wait in, the nonblocking
 * and persistent collectives that run, and its communicators with how many collectives it has
 * entered on each. The rank writes; the daemon reads while the rank computes, hangs or is stopped,
 * and believes nothing: it copies an entry, checks it, and drops what changed meanwhile. Two ranks
 * that have counted differently on one communicator show who has not come yet.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

/* Entries of a rank. Whoever finds none free stays unseen. */
#define CALLS_RECORDS 64u
#define CALLS_COMMS   64u

#define CALLS_FUNCTION 40u /* longest name: MPI_Intercomm_create_from_groups */
#define CALLS_NAME     64u

enum calls_state {
    CALLS_FREE = 0,
    CALLS_WAITS = 1, /* a thread waits in `function` */
    CALLS_RUNS = 2,  /* a collective that `function` started or made is under way */
    CALLS_N_STATES
};

/* Collectives count apart by how they are called (client/coll/family/coll.h). */
enum calls_form { CALLS_BLOCKING, CALLS_NONBLOCKING, CALLS_PERSISTENT, CALLS_FORMS };

#define CALLS_NO_CONTEXT UINT32_MAX

struct calls_record {
    _Atomic uint32_t state; /* enum calls_state; stored last (release), set to CALLS_FREE first */
    uint32_t context; /* context id of the communicator of a collective, else CALLS_NO_CONTEXT */
    uint32_t form;    /* enum calls_form of a collective */
    uint32_t
        sequence; /* number of the collective on its communicator, from 1; 0: not known, or none */
    uint64_t since_ns; /* CLOCK_MONOTONIC(_COARSE) */
    uint32_t thread;   /* the kernel's number, in the rank's name space */
    uint32_t reserved;
    char function[CALLS_FUNCTION]; /* ends with 0 */
    uint8_t reserved1[56];
};
static_assert(sizeof(struct calls_record) == 128, "a record is two cache lines");

struct calls_comm {
    _Atomic uint32_t state; /* 1: in use; stored last (release), set to 0 first */
    uint32_t context;       /* context id; the members of disjoint communicators may share one */
    uint32_t leader;        /* world rank of a member that all of them name alike */
    int32_t rank, size;     /* own rank, and ranks of the own group */
    int32_t remote_size;    /* ranks of the other group, 0: none */
    _Atomic uint32_t entered[CALLS_FORMS]; /* collectives begun here; persistent ones: made */
    uint32_t reserved[7];
    char name[CALLS_NAME];                  /* ends with 0; "": none was given */
    char last[CALLS_FORMS][CALLS_FUNCTION]; /* the last of these functions; ends with 0 */
    uint8_t reserved1[8];
};
static_assert(sizeof(struct calls_comm) == 256, "four cache lines");

struct calls_board {
    struct calls_record records[CALLS_RECORDS];
    struct calls_comm comms[CALLS_COMMS];
};
