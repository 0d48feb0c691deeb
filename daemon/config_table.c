/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/config_table.h"

#include <assert.h>

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/seal/seal.h"
#include "proto/hop.h"
#include "proto/segment.h"

static const struct config_choice log_levels[] = {{"error", LOG_ERROR},   {"warn", LOG_WARN},
                                                  {"notice", LOG_NOTICE}, {"info", LOG_INFO},
                                                  {"debug", LOG_DEBUG},   {0}};
static const struct config_choice wait_modes[] = {
    {"adaptive", WAIT_ADAPTIVE}, {"spin", WAIT_SPIN}, {"event", WAIT_EVENT}, {0}};
static const struct config_choice channel_wait_modes[] = {{"inherit", CONFIG_WAIT_INHERIT},
                                                          {"adaptive", WAIT_ADAPTIVE},
                                                          {"spin", WAIT_SPIN},
                                                          {"event", WAIT_EVENT},
                                                          {0}};
static const struct config_choice protect_modes[] = {
    {"none", SEAL_NONE}, {"integrity", SEAL_INTEGRITY}, {"encrypt", SEAL_ENCRYPT}, {0}};
static const struct config_choice yes_no[] = {{"yes", 1}, {"no", 0}, {0}};

#define TEXT(field)   offsetof(struct config, field), sizeof(((struct config *)0)->field)
#define NUMBER(field) offsetof(struct config, field), 0
#define CHANNEL_TEXT(field)                                                                        \
    offsetof(struct config_channel, field), sizeof(((struct config_channel *)0)->field)
#define CHANNEL_NUMBER(field) offsetof(struct config_channel, field), 0

const struct config_entry config_entries[] = {
    {"node", "name", TYPE_NAME, TEXT(name), "", 0, 0, NULL, false,
     "Name of this node, unique in the cluster. Empty: the host name up to the first dot."},
    {"node", "key_file", TYPE_TEXT, TEXT(key_file), "", 0, 0, NULL, false,
     "File with the cluster key, the same on all nodes: 32 to 1024 bytes, readable by the daemon's "
     "user only. "
     "Needed as soon as there is a channel."},
    {"node", "runtime_dir", TYPE_TEXT, TEXT(runtime_dir), "", 0, 0, NULL, false,
     "Directory of the sockets. Empty: /run/motet for root, else $XDG_RUNTIME_DIR/motet."},
    {"node", "client_socket", TYPE_TEXT, TEXT(client_socket), "", 0, 0, NULL, false,
     "Socket for mpiexec and ranks; a leading @ means the abstract name space. Empty: client.sock "
     "in runtime_dir."},
    {"node", "status_socket", TYPE_TEXT, TEXT(status_socket), "", 0, 0, NULL, false,
     "Socket for motetctl. Empty: status.sock in runtime_dir."},
    {"node", "client_mode", TYPE_MODE, NUMBER(client_mode), "0666", 0, 0777, NULL, false,
     "Permissions of both sockets: who may start jobs here and ask. Ranks always run as the user "
     "who started the job."},
    {"node", "spawner", TYPE_TEXT, TEXT(spawner), "", 0, 0, NULL, false,
     "Program that forks the ranks. Empty: the installed one, or $MOTET_SPAWNER."},
    {"node", "log_level", TYPE_CHOICE, NUMBER(log_level), "notice", 0, 0, log_levels, true,
     "Lines less important than this are not logged."},
    {"node", "fenced", TYPE_CHOICE, NUMBER(fenced), "no", 0, 0, yes_no, false,
     "yes: make all processes use full fences even where membarrier(2) works, for containers that "
     "forbid the call."},

    {"mesh", "heartbeat", TYPE_TIME, NUMBER(heartbeat_ns), "200ms", 10 * MS, 10 * SEC, NULL, true,
     "How often a neighbour is asked for a sign of life on each network while a job across nodes "
     "runs, if both have to do with one or are gateways."},
    {"mesh", "dead_after", TYPE_TIME, NUMBER(dead_after_ns), "1s", 50 * MS, 60 * SEC, NULL, true,
     "A link that was silent for so long is dead; its traffic takes another way."},
    {"mesh", "idle_heartbeat", TYPE_TIME, NUMBER(idle_heartbeat_ns), "5s", 10 * MS, 60 * SEC, NULL,
     true,
     "Instead of heartbeat where no job across nodes depends on the neighbour; then a link is dead "
     "after three of these. The longer of the two counts. Only the two nodes of each network that "
     "flood for the others, and their neighbours, send them."},
    {"mesh", "unreachable_after", TYPE_TIME, NUMBER(unreachable_after_ns), "10s", 100 * MS,
     3600 * SEC, NULL, true,
     "A node without any way to it for so long is given up: jobs with ranks there end. One whose "
     "host says that no daemon runs there any "
     "more is given up at once."},
    {"mesh", "handshake", TYPE_TIME, NUMBER(handshake_ns), "5s", 100 * MS, 60 * SEC, NULL, true,
     "A connection that has not proved the cluster key by then is closed."},
    {"mesh", "reconnect", TYPE_TIME, NUMBER(reconnect_ns), "500ms", 50 * MS, 60 * SEC, NULL, true,
     "Pause between attempts to connect to a node that does not answer."},
    {"mesh", "max_nodes", TYPE_COUNT, NUMBER(max_nodes), "4096", 1, HOP_MAX_NODES, NULL, false,
     "Most nodes this daemon keeps in its tables."},

    {"transport", "packet_bytes", TYPE_SIZE, NUMBER(packet_bytes), "16KiB", 1 * KIB, 256 * KIB,
     NULL, false,
     "Largest payload of a packet, a multiple of 64; equal on all nodes of a cluster."},
    {"transport", "blocks_per_channel", TYPE_COUNT, NUMBER(blocks_per_channel), "2048", 64, 65536,
     NULL, false, "Packet buffers of each channel, taken at start."},
    {"transport", "relay_queue", TYPE_COUNT, NUMBER(relay_queue), "512", 16, 65536, NULL, false,
     "Most packets waiting for one neighbour on one channel; beyond it a gateway drops and the "
     "sender sends again."},
    {"transport", "rank_hold_bytes", TYPE_SIZE, NUMBER(rank_hold_bytes), "16MiB", 64 * KIB,
     1024 * MIB, NULL, false, "Most bytes kept for a rank that does not take its messages."},
    {"transport", "wait_mode", TYPE_CHOICE, NUMBER(wait_mode), "adaptive", 0, 0, wait_modes, true,
     "How channel threads wait: adaptive (spin, yield, sleep), spin (never sleeps), event (sleeps "
     "at once)."},
    {"transport", "sleep_after", TYPE_TIME, NUMBER(sleep_after_ns), "200us", 0, 10 * SEC, NULL,
     false, "A channel thread in adaptive mode sleeps after so long without work."},

    {"jobs", "max_jobs", TYPE_COUNT, NUMBER(max_jobs), "256", 1, 4096, NULL, true,
     "Most jobs at one time on this node."},
    {"jobs", "max_ranks", TYPE_COUNT, NUMBER(max_ranks), "16384", 1, 1000000, NULL, true,
     "Most ranks at one time on this node."},
    {"jobs", "max_clients", TYPE_COUNT, NUMBER(max_clients), "4096", 8, 65536, NULL, true,
     "Most connections to the client socket, those of ranks not counted, and to the status socket, "
     "each; at most a half and an eighth of the files that the daemon may open."},
    {"jobs", "user_jobs", TYPE_COUNT, NUMBER(user_jobs), "128", 1, 4096, NULL, true,
     "Most jobs of one user at one time on this node. This and the following limits are for every "
     "user but root and the daemon's own; and nobody has more than half of what other users leave "
     "of a total."},
    {"jobs", "user_ranks", TYPE_COUNT, NUMBER(user_ranks), "4096", 1, 1000000, NULL, true,
     "Most ranks of one user at one time on this node."},
    {"jobs", "user_connections", TYPE_COUNT, NUMBER(user_connections), "1024", 1, 65536, NULL, true,
     "Most connections of one user to the client socket, those of ranks not counted, and to the "
     "status socket, each."},
    {"jobs", "user_requests", TYPE_COUNT, NUMBER(user_requests), "16", 1, 64, NULL, true,
     "Most requests of one user to the status socket that wait for the answers of other nodes."},
    {"jobs", "user_segment_bytes", TYPE_SIZE, NUMBER(user_segment_bytes), "0B", 0, 1ull << 50, NULL,
     true,
     "Most memory that messages of one user's jobs may fill on this node; the job that fills more "
     "is ended. 0: half of the node's memory."},
    {"jobs", "kill_grace", TYPE_TIME, NUMBER(kill_grace_ns), "1s", 0, 60 * SEC, NULL, true,
     "When a job fails its other ranks get SIGTERM, and SIGKILL after this time."},
    {"jobs", "drain_limit", TYPE_TIME, NUMBER(drain_limit_ns), "20s", 0, 3600 * SEC, NULL, true,
     "When the daemon is told to end, jobs that were started from other nodes may go on here for "
     "so long; then they are ended."},
    {"jobs", "mail_bytes", TYPE_SIZE, NUMBER(mail_bytes), "64MiB", 1 * MIB, 4096 * MIB, NULL, true,
     "Most bytes of control messages waiting for one other node."},

    {"channel", "interface", TYPE_NAME, CHANNEL_TEXT(interface), "", 0, 0, NULL, false,
     "Network interface, for instance eth0. Either this or cidr."},
    {"channel", "cidr", TYPE_TEXT, CHANNEL_TEXT(cidr), "", 0, 0, NULL, false,
     "The interface that has an address in this range, for instance 10.1.0.0/24."},
    {"channel", "network", TYPE_NAME, CHANNEL_TEXT(network), "", 0, 0, NULL, false,
     "Name of the network, the same on all nodes that are on it. Empty: the name of the channel."},
    {"channel", "provider", TYPE_NAME, CHANNEL_TEXT(provider), "auto", 0, 0, NULL, false,
     "auto, tcp (our own TCP driver), udp (our own UDP driver), ofi-tcp and ofi-udp (TCP "
     "and UDP through libfabric), or the name of a libfabric provider (verbs, efa, psm3, ...); "
     "the same on all nodes of a network."},
    {"channel", "port", TYPE_COUNT, CHANNEL_NUMBER(port), "7117", 1, 65535, NULL, false,
     "TCP port of the daemons' own connections on this network."},
    {"channel", "data_port", TYPE_COUNT, CHANNEL_NUMBER(data_port), "0", 0, 65535, NULL, false,
     "Port of the data connections or datagrams on this network, for firewalls; providers tcp and "
     "udp. 0: any that is free."},
    {"channel", "seeds", TYPE_SEEDS, CHANNEL_TEXT(seeds), "", 0, 0, NULL, false,
     "Some nodes of this network to connect to first, host or host:port, separated by commas; the "
     "others are learnt from them. "
     "One node in common is enough; the own address in the list does no harm."},
    {"channel", "mbytes_per_s", TYPE_COUNT, CHANNEL_NUMBER(mbytes_per_s), "0", 0, 1000000, NULL,
     false,
     "Bandwidth for the choice of routes. 0: the speed the interface reports, or 1000 if it "
     "reports none."},
    {"channel", "protect", TYPE_CHOICE, CHANNEL_NUMBER(protect), "integrity", 0, 0, protect_modes,
     false,
     "What guards the messages on this network, the same on all its nodes. integrity: nobody can "
     "forge, change or replay packets, and what is damaged on the way is sent again; encrypt: "
     "nobody can read them either (AES-GCM); none: for a network that nobody else reaches."},
    {"channel", "wait_mode", TYPE_CHOICE, CHANNEL_NUMBER(wait_mode), "inherit", 0, 0,
     channel_wait_modes, true, "How this channel's thread waits; inherit: as in [transport]."},
    {"channel", "fault", TYPE_TEXT, CHANNEL_TEXT(fault), "", 0, 0, NULL, false,
     "For tests only: losses to inject, for instance "
     "drop=0.01,duplicate=0.01,reorder=0.01,delay_us=500,seed=7; with provider udp also lose=0.01, "
     "of datagrams."},
};
const size_t config_n_entries = sizeof config_entries / sizeof config_entries[0];
static_assert(sizeof config_entries / sizeof config_entries[0] <= CONFIG_NODE_KEYS,
              "a place for each origin");
