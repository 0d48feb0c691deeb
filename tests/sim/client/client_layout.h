/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the bytes of a message lie in memory, as an MPI datatype and as a function; contents that can
 * be told from others; buffers that show what was written beside the message.
 */
#pragma once

#include "mpi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layout { LAYOUT_DENSE, LAYOUT_VECTOR, LAYOUT_RESIZED, LAYOUT_PIECES, LAYOUTS };

struct layout_buffer {
    enum layout layout;
    int n_bytes; /* of the message that fits */
    char *memory;
    char *start; /* what MPI gets */
    MPI_Datatype type;
    int count;
    size_t n_memory;
};

/* Room for n_bytes, filled with a pattern. Another layout is taken where this one does not fit. */
void layout_make(struct layout_buffer *b, enum layout layout, int n_bytes);
void layout_free(struct layout_buffer *b);
/* Contents of a message of n_bytes. */
void layout_fill(struct layout_buffer *b, int n_bytes, uint32_t salt);
/* NULL if the first n_bytes are those, and nothing else was touched; else what is wrong. To be
 * asked once. */
const char *layout_differs(const struct layout_buffer *b, int n_bytes, uint32_t salt);
