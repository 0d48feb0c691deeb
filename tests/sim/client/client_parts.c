/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication of a round: each rank sends to the next one of a ring in partitions
 * that become ready in any order, twice with one pair of requests; the two sides cut the message
 * in different ways.
 */
#include "tests/sim/client/client_layout.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_program.h"
#include "tests/sim/client/client_world.h"

#define PARTS_TURNS 2
#define PARTS_TAG   77

struct parts {
    struct program *program;
    int n_sent, n_received; /* partitions of either side */
    int n_bytes;            /* of the whole message */
    MPI_Request send, receive;
    struct layout_buffer out, in;
};

/* Every partition once, from a random one on. */
static void parts_ready(struct parts *w)
{
    int first = (int)program_draw(&w->program->own, (uint64_t)w->n_sent);
    int step = w->n_sent % 3 ? 3 : 1; /* without a common divisor: each one is met */

    for (int i = 0; i < w->n_sent; i++) {
        program_dawdle(w->program);
        CHECK(MPI_Pready((first + i * step) % w->n_sent, w->send));
    }
}

/* Partitions that have arrived are whole before the request is. */
static void parts_look(struct parts *w)
{
    int part = (int)program_draw(&w->program->own, (uint64_t)w->n_received), flag = 0;

    for (int tries = (int)program_draw(&w->program->own, 8); tries > 0 && !flag; tries--) {
        CHECK(MPI_Parrived(w->receive, part, &flag));
        process_pause(program_draw(&w->program->own, 50000));
    }
}

static void parts_turn(struct parts *w, uint32_t salt_out, uint32_t salt_in)
{
    layout_fill(&w->out, w->n_bytes, salt_out);
    CHECK(MPI_Start(&w->receive));
    CHECK(MPI_Start(&w->send));
    parts_ready(w);
    parts_look(w);
    CHECK(MPI_Wait(&w->receive, MPI_STATUS_IGNORE));
    CHECK(MPI_Wait(&w->send, MPI_STATUS_IGNORE));
    const char *wrong = layout_differs(&w->in, w->n_bytes, salt_in);
    if (wrong)
        world_fail("partitioned, %d to %d parts of together %d bytes: %s", w->n_sent, w->n_received,
                   w->n_bytes, wrong);
}

void parts_round(struct program *p, struct meeting *m)
{
    struct rand plan = program_plan(m);
    struct parts w = {.program = p};
    uint32_t salt = (uint32_t)rand_next(&plan);
    int piece = 1 + (int)program_draw(&plan, program_draw(&plan, 3) ? 200 : 5000);
    int to = (m->rank + 1) % m->size, from = (m->rank + m->size - 1) % m->size;

    w.n_sent = 1 + (int)program_draw(&plan, 8);
    w.n_received = 1 + (int)program_draw(&plan, 8);
    w.n_bytes = w.n_sent * w.n_received * piece;
    world_say("round %u: partitioned, %d to %d parts of together %d bytes", m->n_rounds, w.n_sent,
              w.n_received, w.n_bytes);
    layout_make(&w.out, LAYOUT_DENSE, w.n_bytes);
    layout_make(&w.in, LAYOUT_DENSE, w.n_bytes);
    CHECK(MPI_Precv_init(w.in.start, w.n_received, w.n_sent * piece, MPI_BYTE, from, PARTS_TAG,
                         m->comm, MPI_INFO_NULL, &w.receive));
    CHECK(MPI_Psend_init(w.out.start, w.n_sent, w.n_received * piece, MPI_BYTE, to, PARTS_TAG,
                         m->comm, MPI_INFO_NULL, &w.send));
    for (int turn = 0; turn < PARTS_TURNS; turn++)
        parts_turn(&w, salt + (uint32_t)(m->rank * PARTS_TURNS + turn),
                   salt + (uint32_t)(from * PARTS_TURNS + turn));
    CHECK(MPI_Request_free(&w.receive));
    CHECK(MPI_Request_free(&w.send));
    layout_free(&w.out);
    layout_free(&w.in);
}
