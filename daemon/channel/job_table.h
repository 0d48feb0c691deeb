/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs as a channel sees them: where their ranks are, and which jobs are known, may still come, or
 * are over. A job is built and freed by the control thread and belongs to the channel's thread in
 * between (channel/attach).
 */
#pragma once

#include "base/list.h"
#include "daemon/port/port.h"

struct up;
struct down;
/*
 * The ranks of another job as peers of those of a job here: one end of a connection between two
 * jobs. Packets of a connection do not name a job but the number of their direction, which is
 * random and which no rank knows: who it is for and who may send follow from this record alone.
 */
struct channel_foreign {
    struct list node; /* in channel_job.foreign */
    struct channel_foreign *hash_next;
    struct channel_job *job;
    uint64_t out, in;             /* in the packets to them, and from them */
    uint32_t first, n;            /* their numbers as peers of the job; `first` is their rank 0 */
    struct channel_place *places; /* [n] */
    /* Being removed: by local rank, what its ring had to be read up to; and whether it was. */
    bool removing;
    uint32_t *read_from;
    bool *read;
};

/* Where blocks of a job wait. */
enum job_blocks {
    JOB_BLOCKS_SENDING,    /* for the credit of a rank elsewhere: channel/backlog */
    JOB_BLOCKS_DELIVERING, /* for room in the ring of a rank here: channel/delivery */
    JOB_BLOCKS_KINDS
};

struct channel_job {
    struct list node; /* in job_table.all, or attach.gone */
    struct cmd_job config;
    struct segment_layout layout;
    struct segment_world *world; /* own copies */
    struct segment_node *nodes;
    struct bell *bell;
    _Atomic uint8_t *closed; /* in the segment, by world rank: 1 where messages wait in a backlog */
    struct channel_job *hash_next;
    uint32_t n_local, n_words;
    uint32_t backlog_max; /* blocks of one rank's messages that wait for room in its ring */
    bool attached, detached;
    uint32_t n_blocks[JOB_BLOCKS_KINDS]; /* that wait for ranks that do not take them */
    uint32_t *n_waiting;      /* by local rank: messages from it in this channel's backlogs */
    struct list foreign;      /* its connections with other jobs */
    struct list foreign_gone; /* those that its end took with it */
    struct channel_foreign **foreign_of; /* [n_foreign] by number behind n_world; NULL: nobody */
    struct up *ups;                      /* by local rank: channel/tx */
    struct down *downs;                  /* channel/delivery */
    uint32_t *data_end;
};

#define JOB_TABLE_HASH      256u
#define JOB_TABLE_ENDED     256u
#define JOB_TABLE_STRANGERS 64u

struct job_table {
    struct list all;
    struct channel_job *hash[JOB_TABLE_HASH];
    struct channel_foreign *foreign[JOB_TABLE_HASH];
    uint64_t ended[JOB_TABLE_ENDED]; /* the last ones */
    uint32_t n_ended;
    struct {
        uint64_t job;
        uint64_t first_ns; /* 0: free */
    } strangers[JOB_TABLE_STRANGERS];
};

void job_table_init(struct job_table *t);
struct channel_job *job_table_find(const struct job_table *t, uint64_t id);
/* May a job that is not known still come? A packet may arrive before the message that announces its
 * job. */
bool job_table_may_come(struct job_table *t, uint64_t id, uint64_t now_ns);
void job_table_add(struct job_table *t, struct channel_job *job);
void job_table_remove(struct job_table *t, struct channel_job *job);

/* May the job keep one more block, of max for all jobs? Its user may have three quarters of what
 * those of other users leave: ranks that take nothing are one user's mistake and must not hold up
 * the others. Root's may have all. Costs a look at every job. */
bool job_table_may_keep(const struct job_table *t, const struct channel_job *job,
                        enum job_blocks kind, uint32_t max);

/* The end here of the connection whose packets carry this number on their way in, or out. NULL:
 * none. */
struct channel_foreign *job_table_foreign_in(const struct job_table *t, uint64_t in);
struct channel_foreign *job_table_foreign_out(const struct job_table *t, uint64_t out);
/* Of a job that is in the table. */
void job_table_add_foreign(struct job_table *t, struct channel_foreign *foreign);
void job_table_remove_foreign(struct job_table *t, struct channel_foreign *foreign);

/* Ranks and foreign processes: numbers from here on are nobody's. */
static inline uint32_t job_table_peers(const struct channel_job *job)
{
    return job->layout.shape.n_world + job->layout.shape.n_foreign;
}

/* The connection through which this peer is reached; NULL: a rank of the job, or nobody. */
static inline struct channel_foreign *job_table_foreign(const struct channel_job *job,
                                                        uint32_t peer)
{
    return peer < job->layout.shape.n_world ? NULL
                                            : job->foreign_of[peer - job->layout.shape.n_world];
}

/* The job that sent this packet from here, and the peer that it was for. NULL: over. */
struct channel_job *job_table_sender(const struct job_table *t, const struct wire_header *h,
                                     uint32_t *ret_peer);

/* Slot of the node on which this peer of the job runs; 0: this one. */
static inline uint32_t job_table_slot(const struct channel_job *job, uint32_t peer)
{
    return job->nodes[job->world[peer].node].slot;
}
