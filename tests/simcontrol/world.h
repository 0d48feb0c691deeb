/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cluster's control plane in one thread: the daemon's own mesh, peers, topology, routes,
 * forwarding tables, mail, job manager, start tree and jobs, over simulated connections, processes
 * and clients. Everything that happens is an event in one queue, drawn from one seed, so a seed is
 * a complete report of what went wrong.
 *
 *      world.c    time, the queue, chance
 *      wire.c     networks, hosts, connections: delay, cuts, what a kernel does when a process or a
 * host dies daemon.c   one node's control plane, wired as daemon/control does it ranks.c    what a
 * job holds on a node: processes, their output, their connections, channels that let go mpiexec.c
 * those who submit jobs, and what they were told truth.c    what must be so when everything is
 * quiet simcontrol.c  topologies and troubles of a seed
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/rand.h"
#include "daemon/cluster/auth.h"
#include "daemon/config.h"

#define MAX_NODES    512u
#define MAX_NETWORKS 256u

struct daemon;
struct mpiexec;
struct world;

/* An event: a function of its object, called at its time unless the daemon that it belongs to is
 * another incarnation by then. */
typedef void event_fn(struct world *w, void *object, uint64_t value);

struct event {
    uint64_t when_ns, order;
    event_fn *fn;
    void *object;
    uint64_t value;
    uint32_t node; /* MAX_NODES: of nobody */
    uint32_t incarnation;
};

/* A computer: its daemon comes and goes. */
struct host {
    uint32_t idx;
    char name[32];
    bool powered;         /* off: nothing is heard of it, not even a refusal */
    uint64_t stalled_ns;  /* its daemon does nothing until then */
    uint32_t incarnation; /* counts starts and ends of the daemon */
    uint32_t epoch;
    uint32_t after_epoch;  /* the next one is to be later; 0: whatever its clock says */
    uint32_t n_starts;     /* what its epochs ought to say, whatever the clock does */
    struct daemon *daemon; /* NULL: none runs */
    uint32_t n_channels;
    uint32_t networks[CONFIG_MAX_CHANNELS];
    bool unplugged[CONFIG_MAX_CHANNELS];
    struct list processes, parts; /* ranks.c */
    /* Test mail, per other node: the last number sent and received in this pair of incarnations. */
    struct probe *probes;
};

/* Mail between two hosts that only counts: see truth.c. */
struct probe {
    uint64_t sent, received;
    uint64_t lost_at;    /* everything sent up to this number may be missing */
    uint32_t from_start; /* of what was received */
};

struct network {
    uint32_t n_members;
    uint32_t members[MAX_NODES];
    uint64_t delay_ns, jitter_ns;
};

struct world {
    uint64_t seed, now_ns, n_events_run, next_order;
    struct rand rand;
    bool verbose;
    struct event *heap;
    size_t n_heap, heap_size;
    uint32_t n_hosts, n_networks;
    struct host hosts[MAX_NODES];
    struct network *networks;
    struct auth_key key;
    struct list connections;
    /* Pairs that cannot hear each other on a network: a list of struct cut (wire.c). */
    struct list cuts;
    struct list jobs; /* struct mpiexec */
    bool calm;        /* no new troubles are to be made */
    unsigned n_submitted, n_refused, n_good, n_failed, n_orphaned;
    const char *shape;
};

/* ---- world.c ---- */

uint64_t world_draw(struct world *w, uint64_t n);
bool world_chance(struct world *w, uint64_t percent);
/* An event of a daemon (host) or of nobody (NULL). */
void world_at(struct world *w, uint64_t when_ns, struct host *host, event_fn *fn, void *object,
              uint64_t value);
void world_after(struct world *w, uint64_t delay_ns, struct host *host, event_fn *fn, void *object,
                 uint64_t value);
/* Runs the next event. False: there is none before this time, which is then the present. */
bool world_step(struct world *w, uint64_t until_ns);
void world_run(struct world *w, uint64_t until_ns);
void world_say(const struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends the program with seed and time. */
void world_fail(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void world_deinit(struct world *w);

/* ---- wire.c ---- */

struct mesh;
struct mesh_socket_ops;
extern const struct mesh_socket_ops wire_socket_ops; /* context: struct host */

/* Whether packets of a network pass between two hosts now. */
bool wire_open(const struct world *w, uint32_t a, uint32_t b, uint32_t network);
/* The index of the channel that a host has on a network, or -1. */
int wire_channel(const struct host *host, uint32_t network);
void wire_cut(struct world *w, uint32_t a, uint32_t b, uint32_t network);
/* From a to b the channels' packets do not pass, though control connections do. */
void wire_data_cut(struct world *w, uint32_t a, uint32_t b, uint32_t network);
/* Whether they do, if anything does. */
bool wire_data_open(const struct world *w, uint32_t a, uint32_t b, uint32_t network);
void wire_heal(struct world *w, uint32_t a, uint32_t b, uint32_t network);
void wire_heal_all(struct world *w);
void wire_unplug(struct world *w, struct host *host, uint32_t channel, bool unplugged);
/* The host is silent from now on; it answers again. (The end of a daemon alone is told by the
 * mesh's own closing.) */
void wire_power_lost(struct world *w, struct host *host);
void wire_power_back(struct world *w, struct host *host);
void wire_deinit(struct world *w);

/* ---- daemon.c ---- */

void daemon_start(struct world *w, struct host *host);
/* As kill -9. */
void daemon_kill(struct world *w, struct host *host);
/* As SIGTERM: takes no new jobs, ends when those it has are over. */
void daemon_drain(struct world *w, struct host *host);
/* Whether packets pass from a to b has changed: the channels of both find out. */
void daemon_data_changed(struct world *w, uint32_t a, uint32_t b, uint32_t network);
struct cluster *daemon_cluster(const struct daemon *d);
struct forwarding *daemon_forwarding(const struct daemon *d);
struct manager *daemon_manager(const struct daemon *d);
struct jobs *daemon_jobs(const struct daemon *d);
struct host *daemon_host(const struct daemon *d);
struct world *daemon_world(const struct daemon *d);
/* The mesh's timer. */
struct daemon_timer {
    uint64_t due_ns;
    uint64_t event_ns; /* of the event that counts, not after due_ns; UINT64_MAX: none */
};
struct daemon_timer *daemon_timer(struct daemon *d);
/* Mail or a deadline is due. */
void daemon_wake(struct daemon *d);

/* ---- ranks.c ---- */

struct job_ops;
extern const struct job_ops ranks_ops; /* context: struct daemon */
/* The daemon is over: its processes die with it. */
void ranks_daemon_ended(struct world *w, struct host *host);
/* Processes and parts of jobs that this host has now. */
unsigned ranks_n_processes(const struct host *host);
unsigned ranks_n_parts(const struct host *host);
void ranks_deinit(struct host *host);
void ranks_spawner_dies(struct world *w, struct host *host);

/* ---- mpiexec.c ---- */

struct manager_ops;
extern const struct manager_ops mpiexec_ops; /* context: struct daemon */

/* What the ranks of a job do. */
enum script {
    SCRIPT_PLAIN,
    SCRIPT_MPI,
    SCRIPT_CRASH,
    SCRIPT_ABORT,
    SCRIPT_HANG,
    SCRIPT_VANISH,
    SCRIPT_N
};

/* Submits a job at this host's daemon. */
void mpiexec_submit(struct world *w, struct host *host);
/* The daemon of this host is over: its clients see that. */
void mpiexec_daemon_ended(struct world *w, struct host *host);
/* What the ranks of a job of this command line do. */
void mpiexec_read_script(const char *argv0, enum script *ret_script, uint32_t *ret_culprit,
                         uint64_t *ret_run_ns, uint32_t *ret_output);
void mpiexec_deinit(struct world *w);

/* ---- truth.c ---- */

void truth_probe(struct world *w, struct host *from, struct host *to);
void truth_on_probe(struct world *w, struct host *at, uint32_t src_node, const uint8_t *body,
                    uint32_t len);
/* The daemon of `at` was told that this node is lost. */
void truth_on_lost(struct world *w, struct host *at, uint32_t node_id);
/* Bounds that hold always. */
void truth_check_bounds(struct world *w);
/* What must be so after a quiet time. */
void truth_check_quiet(struct world *w);
