/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

/* Bounds of the list that the linker makes of all CLIENT_PART; the names are the linker's. */
extern const struct client_part *const __start_client_parts[] __attribute__((visibility("hidden")));
extern const struct client_part *const __stop_client_parts[] __attribute__((visibility("hidden")));

/* Parts are kept on cache lines of their own, as locks in them want it. */
#define PART_ALIGN 64u

struct client {
    void **states; /* a part each, in the order of the list; NULL: the library's own */
};

static struct client library;
struct client *client_here = &library;

static size_t n_parts(void)
{
    return (size_t)(__stop_client_parts - __start_client_parts);
}

static const struct client_part *part_at(size_t i)
{
    return __start_client_parts[i];
}

struct client *client_enter(struct client *client)
{
    struct client *before = client_here;

    for (size_t i = 0; i < n_parts(); i++)
        /* By memcpy: the pointers have a type each. */
        memcpy(part_at(i)->here, client->states ? &client->states[i] : &part_at(i)->library,
               sizeof(void *));
    client_here = client;
    return before;
}

static void init_parts(void)
{
    for (size_t i = 0; i < n_parts(); i++)
        if (part_at(i)->init)
            part_at(i)->init();
}

/* Before main(): error handlers, info objects and others may be used before MPI_Init. */
__attribute__((constructor)) static void client_start_library(void)
{
    init_parts();
}

static void free_states(struct client *client)
{
    for (size_t i = 0; i < n_parts(); i++)
        free(client->states[i]);
    free(client->states);
    free(client);
}

static void *new_state(size_t n_bytes)
{
    size_t room = (n_bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    void *state = aligned_alloc(PART_ALIGN, room);

    if (state)
        memset(state, 0, room);
    return state;
}

struct client *client_new(void)
{
    struct client *client = calloc(1, sizeof *client);

    if (!client)
        return NULL;
    client->states = calloc(n_parts(), sizeof *client->states);
    if (!client->states) {
        free(client);
        return NULL;
    }
    for (size_t i = 0; i < n_parts(); i++) {
        client->states[i] = new_state(part_at(i)->n_bytes);
        if (!client->states[i]) {
            free_states(client);
            return NULL;
        }
    }
    struct client *before = client_enter(client);
    init_parts();
    client_enter(before);
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    struct client *before = client_enter(client);
    for (size_t i = n_parts(); i-- > 0;)
        if (part_at(i)->deinit)
            part_at(i)->deinit();
    client_enter(before);
    free_states(client);
}
