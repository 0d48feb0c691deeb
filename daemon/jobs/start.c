/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/start.h"

#include <errno.h>
#include <string.h>

static int fill_children(struct start *s, size_t position, Motet__Placement *const *placements,
                         size_t n)
{
    for (size_t step = 1; position + step <= n && (position & step) == 0; step <<= 1) {
        if (s->n_children == START_MAX_CHILDREN)
            return -EINVAL;
        s->children[s->n_children++] = placements[position + step - 1]->node_id;
    }
    return 0;
}

int start_init_root(struct start *s, Motet__Placement *const *placements, size_t n)
{
    memset(s, 0, sizeof *s);
    s->own_ready = true;
    return fill_children(s, 0, placements, n);
}

int start_init(struct start *s, uint32_t own_id, uint32_t home_id,
               Motet__Placement *const *placements, size_t n)
{
    size_t position = 1;

    memset(s, 0, sizeof *s);
    while (position <= n && placements[position - 1]->node_id != own_id)
        position++;
    if (position > n)
        return -EINVAL;
    size_t parent = position & (position - 1);
    s->parent = parent == 0 ? home_id : placements[parent - 1]->node_id;
    return fill_children(s, position, placements, n);
}

static enum start_next start_judge(struct start *s)
{
    if (s->over || !s->own_ready || s->answered != (1u << s->n_children) - 1)
        return START_WAITS;
    s->over = true;
    return START_READY;
}

enum start_next start_on_own_ready(struct start *s)
{
    s->own_ready = true;
    return start_judge(s);
}

enum start_next start_on_answer(struct start *s, uint32_t src_id, bool ok)
{
    uint32_t child = 0;

    while (child < s->n_children && s->children[child] != src_id)
        child++;
    if (child == s->n_children || s->answered & 1u << child || s->over)
        return START_IGNORE;
    if (!ok) {
        s->over = true;
        return START_FAILED;
    }
    s->answered |= 1u << child;
    return start_judge(s);
}

void start_over_note(struct start_over *over, uint64_t job)
{
    over->jobs[over->n++ % START_OVER_MAX] = job;
}

bool start_over_has(const struct start_over *over, uint64_t job)
{
    for (uint32_t i = 0; i < START_OVER_MAX && i < over->n; i++)
        if (over->jobs[i] == job)
            return true;
    return false;
}
