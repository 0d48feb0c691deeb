/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/client/client_program.h"

#include <stdlib.h>

#include "base/hash.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_world.h"

void program_check(int error, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;

    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &len);
    world_fail("%s: %s", call, text);
}

struct rand program_plan(struct meeting *m)
{
    return (struct rand){.state = hash_mix64(m->id ^ hash_mix64(++m->n_rounds))};
}

void program_dawdle(struct program *p)
{
    if (program_draw(&p->own, 6) == 0)
        process_pause(program_draw(&p->own, 1u << program_draw(&p->own, 22)));
}

static void remember(struct program *p, MPI_Comm comm, uint64_t id)
{
    struct meeting *m = &p->meetings[p->n_meetings++];

    *m = (struct meeting){.comm = comm, .id = id};
    if (comm == MPI_COMM_NULL)
        return;
    CHECK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_rank(comm, &m->rank));
    CHECK(MPI_Comm_size(comm, &m->size));
}

/* The last one that was made goes. */
static void forget(struct program *p)
{
    struct meeting *m = &p->meetings[--p->n_meetings];

    if (m->comm != MPI_COMM_NULL)
        CHECK(MPI_Comm_free(&m->comm));
}

void meeting_round(struct program *p, struct meeting *of, struct rand *plan)
{
    uint64_t kind = program_draw(plan, 4), id = hash_mix64(of->id + of->n_rounds);
    MPI_Comm made = MPI_COMM_NULL;

    if (p->n_meetings == PROGRAM_COMMS || (kind == 0 && p->n_meetings > 1)) {
        forget(p);
        return;
    }
    if (kind < 2) {
        CHECK(MPI_Comm_dup(of->comm, &made));
    } else if (kind == 2) {
        MPI_Request request;
        CHECK(MPI_Comm_idup(of->comm, &made, &request));
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        uint64_t n_colors = 1 + program_draw(plan, 3), salt = program_draw(plan, 1u << 30);
        uint64_t color = hash_mix64(salt + (uint64_t)of->rank) % n_colors;
        bool outside = hash_mix64(salt * 3 + (uint64_t)of->rank) % 8 == 0;
        int key = (int)(hash_mix64(salt * 5 + (uint64_t)of->rank) % 16);
        CHECK(MPI_Comm_split(of->comm, outside ? MPI_UNDEFINED : (int)color, key, &made));
        id = hash_mix64(id + color);
    }
    remember(p, made, id);
}

static void round_of(struct program *p, struct meeting *m, struct rand *world_plan)
{
    uint64_t kind = program_draw(world_plan, 10);
    bool quiet = program_draw(world_plan, 3) == 0;

    if (m->comm == MPI_COMM_NULL)
        return;
    if (kind < 3) {
        talk_end(talk_begin(p, m, quiet));
    } else if (kind < 5) {
        gather_round(p, m);
    } else if (kind == 8) {
        parts_round(p, m);
    } else if (kind == 9) {
        windows_round(p, m);
    } else {
        /* Messages are under way while something else happens. */
        struct talk *t = talk_begin(p, m, quiet);
        if (kind < 7 || quiet)
            gather_round(p, m);
        else
            talk_end(talk_begin(p, m, false));
        talk_end(t);
    }
}

/* When all that was buffered has left, one message may take the whole buffer. */
static void use_whole_buffer(int n_buffer)
{
    int n = n_buffer - MPI_BSEND_OVERHEAD, rank;
    MPI_Request request;

    CHECK(MPI_Buffer_flush());
    if (n <= 0)
        return;
    void *room = sim_calloc(2, (size_t)n);
    if (!room)
        world_fail("no memory for a buffered message");
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(MPI_Irecv(room, n, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request));
    CHECK(MPI_Bsend((char *)room + n, n, MPI_BYTE, rank, 0, MPI_COMM_WORLD));
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    sim_free(room);
}

void program_main(struct rank *k)
{
    struct program p = {.rank = k};
    int size = 0, rank = -1, n_bytes = 1 + (int)program_draw(&(struct rand){k->in->seed}, 200000);
    void *buffer = sim_malloc((size_t)n_bytes);

    p.own.state = hash_mix64(k->in->seed + 1 + k->world);
    world_say("starts");
    CHECK(MPI_Init(NULL, NULL));
    settle_begin(&p);
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (size != (int)k->in->job.n_world || rank != (int)k->world)
        world_fail("is rank %d of %d", rank, size);
    remember(&p, MPI_COMM_WORLD, hash_mix64(k->in->seed));
    CHECK(MPI_Buffer_attach(buffer, n_bytes));
    for (uint32_t round = 0; round < k->in->n_rounds; round++) {
        struct rand plan = program_plan(&p.meetings[0]);
        program_dawdle(&p);
        if (program_draw(&plan, 4) == 0)
            meeting_round(&p, &p.meetings[0], &plan);
        round_of(&p, &p.meetings[program_draw(&plan, (uint64_t)p.n_meetings)], &plan);
    }
    while (p.n_meetings > 1)
        forget(&p);
    world_say("waits for what it has buffered");
    use_whole_buffer(n_bytes);
    CHECK(MPI_Buffer_detach(&buffer, &n_bytes));
    sim_free(buffer);
    world_say("settles");
    settle(&p);
    world_say("finalizes");
    CHECK(MPI_Finalize());
}
