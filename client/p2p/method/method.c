/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/method/method.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/object/err.h"
#include "client/process/setting.h"
#include "client/transport/transport.h"
#include "mpi.h"

/* Longer than this after the sender began, the time it names is not believed (it has 32 bits). */
#define MOST_NS CLOCK_NS_PER_S

int method_read_setting(uint8_t *ret_fixed)
{
    static const char *const words[] = {[METHOD_RINGS] = "rings",
                                        [METHOD_READ] = "read",
                                        [METHOD_BOTH] = "both",
                                        [METHOD_AUTO] = "auto"};
    const char *value = setting_of("MOTET_COPY");

    if (!value)
        value = words[METHOD_AUTO];
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0) {
            *ret_fixed = (uint8_t)i;
            return MPI_SUCCESS;
        }
    }
    return err_set(MPI_ERR_ARG, "MOTET_COPY is \"%s\": it may be auto, rings, read or both", value);
}

/* Relaxed throughout: each value stands for itself, and an old one is as good. */
static void method_show(struct method_table *m, uint32_t kind, uint32_t class,
                        enum method_state state)
{
    const struct trial *t = &m->trials[kind][class];
    struct method_entry *e = &m->in->entries[kind][class];

    atomic_store_explicit(&e->method, t->method, memory_order_relaxed);
    atomic_store_explicit(&e->state, (uint8_t)state, memory_order_relaxed);
    for (unsigned i = 0; i < METHOD_N; i++)
        atomic_store_explicit(&e->mb_per_s[i], t->mb_per_s[i], memory_order_relaxed);
}

static enum method_state method_state_of(const struct trial *t)
{
    return t->trying ? METHOD_TRYING : t->tried ? METHOD_MEASURED : METHOD_UNTRIED;
}

/* What the setting says, as far as it is for messages of this class. */
static uint8_t method_fixed_for(uint8_t fixed, uint32_t class)
{
    return fixed == METHOD_BOTH && method_class_bytes(class) < METHOD_BOTH_BYTES ? METHOD_READ
                                                                                 : fixed;
}

/* Bits of the methods that are tried beside the rings. */
static uint8_t method_to_try(enum method_kind kind, uint32_t class)
{
    uint64_t bytes = method_class_bytes(class);

    if (kind == METHOD_WINDOW && bytes >= METHOD_WINDOW_BYTES)
        return 0;
    return bytes >= METHOD_BOTH_BYTES ? 1u << METHOD_READ | 1u << METHOD_BOTH : 1u << METHOD_READ;
}

struct method_table *method_new(uint32_t vci, uint32_t me, uint32_t other, uint8_t fixed)
{
    struct method_table *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->in = segment_method_board(transport_here->base, &transport_here->layout, vci, other, me);
    m->out = segment_method_board(transport_here->base, &transport_here->layout, vci, me, other);
    m->fixed = fixed;
    for (uint32_t kind = 0; kind < METHOD_KINDS; kind++) {
        for (uint32_t class = 0; class < METHOD_CLASSES; class ++) {
            struct trial *t = &m->trials[kind][class];
            trial_init(t, method_to_try((enum method_kind)kind, class), (enum method_kind)kind);
            if (fixed == METHOD_AUTO)
                continue;
            t->method = method_fixed_for(fixed, class);
            method_show(m, kind, class, METHOD_FIXED);
        }
    }
    return m;
}

/* ---- sender ---- */

enum method method_for(const struct method_table *m, uint64_t bytes, bool alone, bool *ret_timed)
{
    uint32_t class = method_class(bytes);
    const struct method_entry *e = &m->out->entries[alone ? METHOD_ALONE : METHOD_WINDOW][class];
    uint8_t method = atomic_load_explicit(&e->method, memory_order_relaxed);

    *ret_timed = atomic_load_explicit(&e->state, memory_order_relaxed) == METHOD_TRYING;
    if (m->fixed != METHOD_AUTO)
        return (enum method)method_fixed_for(m->fixed, class);
    return method < METHOD_N ? (enum method)method : METHOD_RINGS;
}

/* ---- receiver ---- */

void method_arrived(struct method_table *m, const struct msg_rts *rts, bool expected,
                    uint32_t first_len, struct method_sample *s)
{
    uint32_t kind = rts->flags & MSG_RTS_ALONE ? METHOD_ALONE : METHOD_WINDOW;
    uint32_t class = method_class(rts->bytes);
    struct trial *t = &m->trials[kind][class];

    s->timed = false;
    if (m->fixed != METHOD_AUTO)
        return;
    if (trial_message(t, rts->bytes))
        method_show(m, kind, class, method_state_of(t));
    if (!(rts->flags & MSG_RTS_TIMED) || first_len >= rts->bytes)
        return;
    uint64_t now_ns = clock_now_ns();
    uint32_t since_ns = (uint32_t)now_ns - rts->time_ns;
    *s = (struct method_sample){.timed = true,
                                .method = msg_rts_method(rts->flags),
                                .kind = (uint8_t)kind,
                                .class = (uint8_t) class,
                                .start_ns = now_ns,
                                .bytes = rts->bytes - first_len};
    /* Of a message that came before its receive, what came with it took no time that counts. */
    if (expected && since_ns < MOST_NS) {
        s->start_ns -= since_ns;
        s->bytes = rts->bytes;
    }
}

void method_timed(struct method_table *m, const struct method_sample *s)
{
    struct trial *t = &m->trials[s->kind][s->class];
    uint64_t now_ns = clock_now_ns();
    /* In a row of messages each begins when the one before is done. */
    uint64_t start_ns = s->start_ns > m->last_ns ? s->start_ns : m->last_ns;

    m->last_ns = now_ns;
    if (trial_sample(t, (enum method)s->method, s->bytes, now_ns - start_ns))
        method_show(m, s->kind, s->class, method_state_of(t));
}

void method_refused(struct method_table *m)
{
    for (uint32_t kind = 0; kind < METHOD_KINDS; kind++) {
        for (uint32_t class = 0; class < METHOD_CLASSES; class ++) {
            struct trial *t = &m->trials[kind][class];
            trial_forbid(t, 1u << METHOD_RINGS);
            t->method = METHOD_RINGS;
            t->trying = false;
            method_show(m, kind, class, METHOD_REFUSED);
        }
    }
}
