/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports at which jobs wait for others (MPI-5.0 section 11.9), and names under which ports are
 * published, as the home of their jobs keeps them. Called by manager.c.
 *
 * A port's name ends in 128 random bits: who has not been told cannot connect, whoever he is, and
 * nobody connects who is another user. Ranks that accept and ranks that connect wait for one
 * another in the order of their coming. Pure, without socket; control thread.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "proto/control.pb-c.h"

struct ports;

/* One that accepts or connects. */
struct port_end {
    uint64_t job;
    uint32_t node_id, rank, request;
};

struct ports_ops {
    void (*answer)(void *ctx, const struct port_end *to, const Motet__Answered *msg);
    /* The two have found one another. */
    void (*meet)(void *ctx, const struct port_end *acceptor, const struct port_end *connector);
};

/* NULL: no memory. */
struct ports *ports_new(const char *node_name, const struct ports_ops *ops, void *ctx);
void ports_free(struct ports *all);

/* A rank of this user asks. Whatever it is gets an answer, at once or when somebody comes. */
void ports_on_ask(struct ports *all, const struct port_end *from, uid_t uid, const Motet__Ask *msg,
                  uint64_t now_ns);
/* The job is over: its ports and names are gone, and it waits no more. */
void ports_on_over(struct ports *all, uint64_t job);

/* When ports_run is to be called; UINT64_MAX: not. */
uint64_t ports_deadline(const struct ports *all);
/* Who has waited for too long hears so. */
void ports_run(struct ports *all, uint64_t now_ns);
