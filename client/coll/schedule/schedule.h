/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules: the program of sends, receives, copies and reductions that one collective is for this
 * rank.
 *
 * Every algorithm of this folder is written once, against these calls. A schedule in the mode "now"
 * carries each call out at once (blocking collectives: a branch per call, no allocation on the
 * short path); in the mode "recorded" it keeps the calls as steps, which progress advances later
 * (nonblocking and persistent collectives). That works because the control flow of a collective
 * depends on ranks, counts and types only, never on the data.
 *
 * Used with the library lock held. A schedule of the mode "now" lives on the caller's stack; a
 * recorded one belongs to its request.
 *
 * Errors stick: the first one is kept in `err`, the steps that follow are still carried out so that
 * no other rank is left waiting; only when memory is missing (`broken`) they are skipped.
 */
#ifndef MOTET_CLIENT_COLL_SCHEDULE_SCHEDULE_H
#define MOTET_CLIENT_COLL_SCHEDULE_SCHEDULE_H

#include "client/coll/node/node.h"
#include "client/coll/op/op.h"
#include "client/datatype/buffer.h"
#include "client/object/comm.h"
#include "client/progress/progress.h"
#include "client/progress/request.h"

#include <stdbool.h>
#include <stddef.h>

/* Scratch and pending requests that a blocking collective has without malloc. 16 requests: a linear
 * exchange among 9 ranks. 1 KiB: the two operands of a latency-bound reduction. */
#define SCHEDULE_INLINE_PENDING 16
#define SCHEDULE_SCRATCH_BYTES  1024

struct queue_record;
struct schedule_step;
struct schedule_temp;

/* The ranks an algorithm runs over: all of a communicator, those of one node, the leaders of the
 * nodes, or (for the exchange phase of intercommunicators) the remote group. Algorithms speak of
 * 0..size-1; map gives communicator ranks. */
struct schedule_view {
    struct comm *comm;
    int rank, size;
    const int *map; /* NULL: identity. Must outlive the schedule's recording. */
};

struct schedule {
    struct schedule_view view;
    int tag; /* of all its messages, in the collective context */
    int err;
    uint32_t detail; /* what is known of err: err_stow() */
    bool recording;
    bool broken;
    bool repeats; /* from schedule_label on */

    /* mode now */
    int n_pending, max_pending;
    struct request **pending;
    struct schedule_temp *temps;
    size_t scratch_used;
    unsigned char *claimed; /* room for the publication that is being filled */

    /* mode recorded; the array of requests above is used while it runs */
    struct comm *owner;
    struct schedule_step *steps;
    int n_steps, max_steps;
    int n_posts;   /* send and receive steps since the last full wait while recording */
    int next_step; /* where the run stands */
    struct queue_record *record; /* shows what it waits for in the node's memory, or NULL */
    bool skips_rest;             /* the collective was judged wrong (STEP_JUDGE) */
    bool advancing;              /* guards against progress called from within a step */

    struct request *inline_pending[SCHEDULE_INLINE_PENDING];
    _Alignas(64) unsigned char scratch[SCHEDULE_SCRATCH_BYTES];
};

/* A schedule on the stack, carried out while it is written. */
void schedule_begin(struct schedule *s, struct comm *comm, int tag);
/* Releases what it holds. Returns the first error. */
int schedule_end(struct schedule *s);
/* The first error; what was said of it becomes the calling thread's. */
int schedule_result(struct schedule *s);

/* A schedule to be recorded, NULL where memory is missing. It holds a reference to comm. */
struct schedule *schedule_new(struct comm *comm, int tag);
void schedule_free(struct schedule *s); /* NULL is fine */

/* Runs a recorded schedule as far as it gets without waiting; true when its end is reached (also
 * after errors). schedule_rewind makes it ready for the next start of a persistent collective. */
bool schedule_advance(struct schedule *s);
void schedule_rewind(struct schedule *s);
/* What a recorded schedule that does not advance waits for in the node's memory: the answer to
 * progress_on_sleep. */
enum progress_news schedule_news(struct schedule *s);

/* Runs the following calls over another view; the old one is returned for restoring. */
struct schedule_view schedule_enter(struct schedule *s, struct schedule_view view);
static inline void schedule_leave(struct schedule *s, struct schedule_view old)
{
    s->view = old;
}

/* Blocking transfers, as the algorithm sees it. Peers are ranks of the view; negative ones
 * (MPI_PROC_NULL) do nothing. */
void schedule_send(struct schedule *s, struct buffer buf, int to);
void schedule_recv(struct schedule *s, struct buffer buf, int from);
void schedule_sendrecv(struct schedule *s, struct buffer sbuf, int to, struct buffer rbuf,
                       int from);

/* Nonblocking ones: complete at schedule_wait. The returned number is for schedule_wait_one until
 * the next full wait. */
int schedule_isend(struct schedule *s, struct buffer buf, int to);
int schedule_irecv(struct schedule *s, struct buffer buf, int from);
void schedule_wait(struct schedule *s);
void schedule_wait_one(struct schedule *s, int id);

/* dst = src. The two may be of different types with equal signature; they do not overlap, or they
 * are the same address and type (MPI_BOTTOM as both with different types is a copy). */
void schedule_copy(struct schedule *s, struct buffer src, struct buffer dst);

/* inout[i] = in[i] op inout[i]: `in` is the operand of the lower ranks. */
void schedule_reduce(struct schedule *s, const void *in, struct buffer inout, struct op *op);

/* ---- the memory of the node (node/node.h); members are ranks of the view, `at` is one step ----
 */

/* Have the ranks of the view a row of steps? The same answer on all of them. */
bool schedule_has_steps(const struct schedule *s);
/* The next step of the view's row. */
struct node_step schedule_take_step(const struct schedule *s);
/* Hides the latency of looking at all members' publications one after the other: for the step after
 * this one. */
void schedule_look_ahead(const struct schedule *s, const struct node_step *at);

/* A publication: room for n_bytes, filled piece by piece (nothing else may come in between), then
 * shown to all members or to one. */
void schedule_claim(struct schedule *s, const struct node_step *at, MPI_Count n_bytes);
void schedule_fill(struct schedule *s, MPI_Count off, struct buffer buf);
void schedule_publish(struct schedule *s, const struct node_step *at, int to);
/* The three of them with one piece. */
void schedule_put(struct schedule *s, const struct node_step *at, struct buffer buf, int to);
/* Waits until a member has published; then takes `count` elements that begin at byte `off`. With
 * off SCHEDULE_WHOLE, the publication is the message: more bytes than fit are MPI_ERR_TRUNCATE.
 * With off SCHEDULE_PIECES(n), it is a piece for each of n > 1 members: if n divides its length,
 * pieces of equal length one after the other, else a table of uint32_t that tells where each
 * begins, and the pieces. */
#define SCHEDULE_WHOLE     (-1)
#define SCHEDULE_PIECES(n) (-1 - (MPI_Count)(n))
void schedule_get(struct schedule *s, const struct node_step *at, int member, MPI_Count off,
                  struct buffer buf);
/* Waits likewise and reduces: inout[i] = published[i] op inout[i]. */
void schedule_get_reduce(struct schedule *s, const struct node_step *at, int member, MPI_Count off,
                         struct buffer inout, struct op *op);
/* Waits likewise. */
void schedule_await(struct schedule *s, const struct node_step *at, int member);
/* Nothing of the step is read here any more. */
void schedule_finish(struct schedule *s, const struct node_step *at);

/* Calls fn(arg) at this place of the run. It returns an error class, or SCHEDULE_AGAIN to run again
 * from the step number `label` (a value of schedule_label; meant for retries). Only in recorded
 * schedules. What comes after the label may be carried out several times and goes by messages: a
 * step in the node's memory is good for once. */
#define SCHEDULE_AGAIN (-1)
int schedule_label(struct schedule *s);
void schedule_call(struct schedule *s, int (*fn)(void *arg), void *arg, int label);

/* Nothing is done but for this error. */
void schedule_fail(struct schedule *s, int err);

/* Calls fn(arg) in either mode; an error that it returns ends the run: nothing more is sent,
 * received or moved. */
void schedule_judge(struct schedule *s, int (*fn)(void *arg), void *arg);

/* Memory that lives as long as the schedule; NULL (and s->broken) when there is none. Size 0 gives
 * a valid pointer. */
void *schedule_temp(struct schedule *s, size_t n_bytes);
/* The same for `count` elements of a type: the address to use as buffer (its lower bound may lie
 * elsewhere). */
void *schedule_temp_typed(struct schedule *s, MPI_Count count, const struct datatype *type);
/* For callers who found none elsewhere: the schedule is broken, with MPI_ERR_NO_MEM. */
void schedule_no_memory(struct schedule *s);

#endif
