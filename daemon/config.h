/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's configuration: one INI file and the drop-ins beside it (FILE.d/ *.conf, by name).
 * Called by main at start and by control at reload; control thread only.
 *
 * Idea: one table (config.c) gives section, key, type, unit, default, limits and help of every
 * setting; the parser, the default file (`motetd --print-config`), the checks and the text of every
 * complaint are made from it. A value outside its limits is refused, never bent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_MAX_CHANNELS 8
#define CONFIG_NAME_BYTES   56 /* names of nodes, networks, channels, with the final NUL */
#define CONFIG_PATH_BYTES   100
#define CONFIG_SEEDS_BYTES  1024

/* Where a value came from, for complaints that can only be made later (an interface that is not
 * there). */
struct config_origin {
    char file[CONFIG_PATH_BYTES];
    int line; /* 0: default */
};

/* Keys of a channel, and of all other sections together: bounds for the tables of origins. */
#define CONFIG_CHANNEL_KEYS 16
#define CONFIG_NODE_KEYS    48

struct config_channel {
    char name[CONFIG_NAME_BYTES];
    char interface[CONFIG_NAME_BYTES];
    char cidr[CONFIG_NAME_BYTES];
    char network[CONFIG_NAME_BYTES];
    char provider[CONFIG_NAME_BYTES];
    char seeds[CONFIG_SEEDS_BYTES];
    char fault[CONFIG_PATH_BYTES];
    uint64_t port;
    uint64_t mbytes_per_s;
    uint64_t protect;            /* enum seal_mode */
    uint64_t wait_mode;          /* enum wait_mode, or CONFIG_WAIT_INHERIT */
    struct config_origin origin; /* of interface or cidr, else of the section */
    struct config_origin origins[CONFIG_CHANNEL_KEYS];
    uint64_t data_port;
    /* Filled by netif_resolve. */
    char resolved_interface[CONFIG_NAME_BYTES];
    char address[48];
};

#define CONFIG_WAIT_INHERIT 100u

struct config {
    /* [node] */
    char name[CONFIG_NAME_BYTES];
    char key_file[CONFIG_PATH_BYTES];
    char runtime_dir[CONFIG_PATH_BYTES];
    char client_socket[CONFIG_PATH_BYTES];
    char status_socket[CONFIG_PATH_BYTES];
    char spawner[CONFIG_PATH_BYTES];
    uint64_t log_level;
    uint64_t client_mode; /* permission bits of the client socket */
    uint64_t fenced;
    /* [mesh] */
    uint64_t heartbeat_ns, dead_after_ns, idle_heartbeat_ns, unreachable_after_ns, handshake_ns,
        reconnect_ns;
    uint64_t max_nodes;
    /* [transport] */
    uint64_t packet_bytes, blocks_per_channel, relay_queue, rank_hold_bytes;
    uint64_t wait_mode, sleep_after_ns;
    /* [jobs] */
    uint64_t max_jobs, max_ranks, max_clients, user_jobs, user_ranks, user_connections,
        user_requests, user_segment_bytes;
    uint64_t kill_grace_ns, drain_limit_ns, mail_bytes;

    struct config_origin origins[CONFIG_NODE_KEYS];
    int n_channels;
    struct config_channel channels[CONFIG_MAX_CHANNELS];
};

/* Receives one complaint, a whole line without a newline. */
typedef void config_report_fn(void *ctx, const char *line);

/* Fills in every default, for the current user and host. */
void config_defaults(struct config *c);
/* Reads a file and its drop-ins over what is there. Every complaint goes to `report`. 0, or -EINVAL
 * if there was one. */
int config_load(struct config *c, const char *path, config_report_fn *report, void *ctx);
/* The same from memory, without drop-ins; `name` stands in the complaints. For tests and
 * fuzzers. */
int config_parse(struct config *c, const char *text, size_t n, const char *name,
                 config_report_fn *report, void *ctx);
/* What no single line can tell: channels without an address, names given twice, a missing key.
 * Fills what depends on other settings (socket paths). 0 or -EINVAL. */
int config_finish(struct config *c, config_report_fn *report, void *ctx);
/* Where a key was set, of a channel or (NULL) of another section: line 0 where it was not. */
const struct config_origin *config_origin(const struct config *c,
                                          const struct config_channel *channel, const char *key);
/* Writes the configuration as a commented file. */
void config_print(const struct config *c, FILE *out);
/* Names through `report` every setting that differs, and what makes `fresh` count. Returns their
 * number. */
int config_diff(const struct config *c, const struct config *fresh, config_report_fn *report,
                void *ctx);
/* Takes over from `fresh` what can change in a running daemon; names everything else that differs
 * through `report`. Returns the number of settings that need a restart. */
int config_reload(struct config *c, const struct config *fresh, config_report_fn *report,
                  void *ctx);
