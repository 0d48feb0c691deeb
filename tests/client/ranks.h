/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a job on one node, all in this process and on this thread: a client each, over a job
 * segment in ordinary memory. For unit tests of the library; nothing may block, since only the rank
 * that has the turn runs. Programs are linked with --wrap for the functions of transport/attach.c
 * that speak to the daemon.
 */
#pragma once

#include "client/client.h"
#include "proto/hop.h"
#include "proto/segment.h"

#define RANKS_MAX 8

struct ranks {
    uint32_t n;
    void *base;
    struct segment_layout layout;
    struct hop_table hops;
    struct client *clients[RANKS_MAX];
};

/* n ranks after MPI_Init_thread with this level; rank 0 has the turn. */
struct ranks *ranks_new(uint32_t n, int thread_level);
/* Gives the turn to a rank. */
void ranks_turn(const struct ranks *ranks, uint32_t rank);
/* The library's own client has the turn afterwards. */
void ranks_free(struct ranks *ranks);
