/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/method/trial.h"

#include <string.h>

void trial_init(struct trial *t, uint8_t permitted, enum method_kind kind)
{
    *t = (struct trial){.permitted = permitted | 1u << METHOD_RINGS,
                        .method = METHOD_RINGS,
                        .settled = METHOD_RINGS,
                        .most_samples = kind == METHOD_ALONE ? TRIAL_SAMPLES : TRIAL_WINDOW_SAMPLES,
                        .rest_messages = TRIAL_FIRST_MESSAGES};
}

static bool trial_may(const struct trial *t, unsigned method)
{
    return (t->permitted >> method & 1) != 0;
}

static uint32_t trial_best_rate(const struct trial *t)
{
    uint32_t best = 0;

    for (unsigned m = 0; m < METHOD_N; m++)
        best = t->mb_per_s[m] > best ? t->mb_per_s[m] : best;
    return best;
}

/* Whether this round tries the method. */
static bool trial_has_a_chance(const struct trial *t, unsigned method)
{
    return t->round < TRIAL_ALL_ROUNDS || t->mb_per_s[method] > trial_best_rate(t) / 2;
}

static void trial_begin_step(struct trial *t)
{
    t->n_samples = 0;
    t->n_without = 0;
    t->step_ns = t->step_bytes = 0;
}

static void trial_begin(struct trial *t)
{
    t->trying = true;
    t->round = 0;
    t->trial_bytes = 0;
    memset(t->mb_per_s, 0, sizeof t->mb_per_s);
    t->method = METHOD_RINGS;
    trial_begin_step(t);
}

/* How many times as fast as the slowest method the fastest one is. */
static uint32_t trial_spread(const struct trial *t)
{
    uint32_t best = trial_best_rate(t), worst = best;

    for (unsigned m = 0; m < METHOD_N; m++)
        if (t->mb_per_s[m] > 0 && t->mb_per_s[m] < worst)
            worst = t->mb_per_s[m];
    return worst > 0 ? (best + worst - 1) / worst : 1;
}

static uint64_t trial_times(uint64_t bytes, uint64_t times)
{
    return bytes > UINT64_MAX / times ? UINT64_MAX : bytes * times;
}

static void trial_decide(struct trial *t)
{
    uint32_t best = trial_best_rate(t);
    uint64_t own = t->mb_per_s[t->settled];
    /* The first choice is soon looked at again: a program's beginning is like nothing that follows.
     */
    uint64_t share = t->tried ? TRIAL_SHARE : TRIAL_SHARE / 8;

    t->trying = false;
    t->tried = true;
    if (own + own / TRIAL_WORTH < best)
        for (unsigned m = METHOD_N; m-- > 0;)
            if (t->mb_per_s[m] == best)
                t->settled = (uint8_t)m;
    t->method = t->settled;
    t->rest_bytes = trial_times(t->trial_bytes, share * trial_spread(t));
    t->rest_messages = TRIAL_SHARE;
}

/* On to the next method, the next round, or the end. */
static void trial_end_step(struct trial *t)
{
    unsigned m = t->method;

    do {
        if (++m == METHOD_N) {
            m = 0;
            if (++t->round == TRIAL_ROUNDS) {
                trial_decide(t);
                return;
            }
        }
    } while (!trial_may(t, m) || !trial_has_a_chance(t, m));
    t->method = (uint8_t)m;
    trial_begin_step(t);
}

bool trial_forbid(struct trial *t, uint8_t permitted)
{
    bool changed = (permitted & t->permitted) != t->permitted;

    t->permitted &= permitted | 1u << METHOD_RINGS;
    for (unsigned m = 0; m < METHOD_N; m++)
        if (!trial_may(t, m))
            t->mb_per_s[m] = 0;
    if (!trial_may(t, t->settled))
        t->settled = METHOD_RINGS;
    if (!t->trying)
        t->method = t->settled;
    else if (!trial_may(t, t->method))
        trial_end_step(t);
    return changed;
}

bool trial_message(struct trial *t, uint64_t bytes)
{
    if (t->trying) {
        t->trial_bytes += bytes;
        if (++t->n_without <= TRIAL_PATIENCE)
            return false;
        trial_end_step(t);
        return true;
    }
    if (t->rest_messages > 0)
        t->rest_messages--;
    t->rest_bytes -= bytes < t->rest_bytes ? bytes : t->rest_bytes;
    if (t->rest_messages > 0 || t->rest_bytes > 0 || t->permitted == 1u << METHOD_RINGS)
        return false;
    trial_begin(t);
    return true;
}

bool trial_sample(struct trial *t, enum method method, uint64_t bytes, uint64_t ns)
{
    if (!t->trying || method != t->method)
        return false;
    t->n_without = 0;
    if (t->n_samples++ == 0)
        return false;
    t->step_ns += ns;
    t->step_bytes += bytes;
    if (t->n_samples < TRIAL_SAMPLES ||
        (t->n_samples < t->most_samples && t->step_bytes < TRIAL_WINDOW_BYTES))
        return false;
    /* Bytes a microsecond: MB/s. At least 1: it has a figure. */
    uint64_t rate = t->step_bytes * 1000 / (t->step_ns + 1);
    if (rate > UINT32_MAX)
        rate = UINT32_MAX;
    if (rate == 0)
        rate = 1;
    if (rate > t->mb_per_s[method])
        t->mb_per_s[method] = (uint32_t)rate;
    trial_end_step(t);
    return true;
}
