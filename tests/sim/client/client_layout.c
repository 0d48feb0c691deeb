/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/client/client_layout.h"

#include <string.h>

#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_program.h"
#include "tests/sim/client/client_world.h"

#define GUARD 32
#define UNIT  4 /* bytes of an element of the layouts with gaps */
#define FRESH 0xa5

static uint8_t byte_of(uint32_t salt, int i)
{
    return (uint8_t)((salt + (uint32_t)i * 2654435761u) >> 21);
}

/* Where byte i lies. */
static int layout_at(const struct layout_buffer *b, int i)
{
    int half = b->n_bytes / 2;

    switch (b->layout) {
    case LAYOUT_VECTOR:
        return i / UNIT * (2 * UNIT) + i % UNIT;
    case LAYOUT_RESIZED:
        return i / UNIT * (3 * UNIT) + i % UNIT;
    case LAYOUT_PIECES:
        /* The first piece lies behind the second. */
        return i < half ? b->n_bytes - half + GUARD + i : i - half;
    default:
        return i;
    }
}

static int layout_span(enum layout layout, int n_bytes)
{
    switch (layout) {
    case LAYOUT_VECTOR:
        return 2 * n_bytes;
    case LAYOUT_RESIZED:
        return 3 * n_bytes;
    case LAYOUT_PIECES:
        return n_bytes + GUARD;
    default:
        return n_bytes;
    }
}

static void layout_type(struct layout_buffer *b)
{
    MPI_Datatype unit;
    int half = b->n_bytes / 2;

    b->count = 1;
    switch (b->layout) {
    case LAYOUT_VECTOR:
        CHECK(MPI_Type_vector(b->n_bytes / UNIT, UNIT, 2 * UNIT, MPI_BYTE, &b->type));
        break;
    case LAYOUT_RESIZED:
        CHECK(MPI_Type_contiguous(UNIT, MPI_BYTE, &unit));
        CHECK(MPI_Type_create_resized(unit, -UNIT, 3 * UNIT, &b->type));
        CHECK(MPI_Type_free(&unit));
        b->count = b->n_bytes / UNIT;
        break;
    case LAYOUT_PIECES: {
        int lengths[] = {half, b->n_bytes - half};
        MPI_Aint at[] = {b->n_bytes - half + GUARD, 0};
        CHECK(MPI_Type_create_hindexed(2, lengths, at, MPI_BYTE, &b->type));
        break;
    }
    default:
        b->type = MPI_BYTE;
        b->count = b->n_bytes;
        return;
    }
    CHECK(MPI_Type_commit(&b->type));
}

void layout_make(struct layout_buffer *b, enum layout layout, int n_bytes)
{
    if (n_bytes == 0 || (layout != LAYOUT_PIECES && n_bytes % UNIT != 0))
        layout = LAYOUT_DENSE;
    *b = (struct layout_buffer){.layout = layout, .n_bytes = n_bytes};
    b->n_memory = (size_t)(layout_span(layout, n_bytes) + 2 * GUARD);
    b->memory = sim_malloc(b->n_memory);
    if (!b->memory)
        world_fail("no memory for a buffer");
    memset(b->memory, FRESH, b->n_memory);
    b->start = b->memory + GUARD;
    layout_type(b);
}

void layout_free(struct layout_buffer *b)
{
    if (b->layout != LAYOUT_DENSE)
        CHECK(MPI_Type_free(&b->type));
    sim_free(b->memory);
    b->memory = NULL;
}

void layout_fill(struct layout_buffer *b, int n_bytes, uint32_t salt)
{
    for (int i = 0; i < n_bytes; i++)
        b->start[layout_at(b, i)] = (char)byte_of(salt, i);
}

const char *layout_differs(const struct layout_buffer *b, int n_bytes, uint32_t salt)
{
    /* What is right is made fresh again, and then nothing else may be left. */
    for (int i = 0; i < n_bytes; i++) {
        char *at = &b->start[layout_at(b, i)];
        if ((uint8_t)*at != byte_of(salt, i))
            return "a byte of the message is wrong";
        *at = (char)FRESH;
    }
    for (size_t i = 0; i < b->n_memory; i++)
        if ((uint8_t)b->memory[i] != FRESH)
            return "a byte beside the message was written";
    return NULL;
}
