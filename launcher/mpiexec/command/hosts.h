/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host lists of the command line and of host files, and the placement of ranks on them. Called by
 * mpiexec while it reads its command line; nothing here talks to anyone.
 *
 * A host has slots: how many ranks in a row it takes before the next host has its turn (1 if not
 * said). When the list is through and ranks are left, it starts again, as MPICH's and Intel's
 * launchers do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/cli/words.h"

#define HOSTS_NAME_MAX  55u /* limit of a node name in proto/control.proto */
#define HOSTS_SLOTS_MAX 4096u

struct host {
    char *name;
    uint32_t slots;     /* at least 1 */
    uint32_t max_slots; /* 0: no limit */
    uint32_t taken;     /* ranks placed so far */
};

struct host_list {
    struct host *at;
    size_t n, room;
    size_t cursor; /* where the next rank goes, and how many this host has got in its turn */
    uint32_t in_turn;
};

/* How ranks are put on hosts. */
struct hosts_mapping {
    uint32_t ppn; /* takes the place of all slots; 0: not said */
    bool by_node; /* one on each host in turn, as long as it has slots, then on all again */
    enum { HOSTS_RANKS_AS_MAPPED, HOSTS_RANKS_BY_SLOT, HOSTS_RANKS_BY_NODE } ranks; /* numbers */
};

struct host_error {
    char text[256];
};

/* "a,b:4,c". 0, or -EINVAL or -ENOMEM with the text. */
int hosts_parse_list(struct host_list *list, const char *text, struct host_error *ret_error);
/* A file with a host a line: `name`, `name:slots`, `name slots=N max_slots=N`; `#` begins a
 * comment. `name` is for messages. */
int hosts_parse_text(struct host_list *list, const char *name, const char *text,
                     struct host_error *ret_error);
int hosts_parse_file(struct host_list *list, const char *path, struct host_error *ret_error);
void hosts_free(struct host_list *list);

/* Sum of the slots; with ppn > 0 ppn for each host. */
uint64_t hosts_n_slots(const struct host_list *list, uint32_t ppn);
/* Ranks that may still be placed; UINT64_MAX: any number. */
uint64_t hosts_room(const struct host_list *list);

/* Places n more ranks, going on where the last call ended, and adds "name:count" per run of ranks
 * in the order of their numbers. 0, or with the text -ENOSPC when every host has its max_slots, or
 * -ENOMEM. */
int hosts_place(struct host_list *list, const struct hosts_mapping *mapping, uint32_t n,
                struct words *ret_runs, struct host_error *ret_error);

/* Whether the name means this machine: localhost, a loopback address, or the host name. */
bool hosts_is_local(const char *name);
bool hosts_all_local(const struct host_list *list);
