/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/pulse.h"

#include "base/clock.h"

/* Between probes while it is to be decided. */
#define FAST_NS (50 * CLOCK_NS_PER_MS)
/* The same for a link that has been down for longer than jobs wait by default: nobody is in a
 * hurry. */
#define SLOW_NS       CLOCK_NS_PER_S
#define SLOW_AFTER_NS (30 * CLOCK_NS_PER_S)
/* A link falls when so many probes in a row, and all for so long, had no answer: a loss of one
 * packet in ten on both ways comes to less than one in a thousand, and a thread that waits a time
 * slice of each of twenty others is not taken for dead. Where round trips are long, so is this. */
#define MISSES          5u
#define PATIENCE_NS     (400 * CLOCK_NS_PER_MS)
#define PATIENCE_MAX_NS (3 * CLOCK_NS_PER_S)
#define PATIENCE_PEAKS  4u
/* A packet of full size may be many datagrams, each of which may be lost. */
#define LARGE_MISSES 8u
/* The other side may not know us yet. */
#define UNPROVED_NS (2 * CLOCK_NS_PER_S)
/* After an error that is not followed by a new connection. */
#define BROKEN_NS          (200 * CLOCK_NS_PER_MS)
#define HELD_NS            (2 * CLOCK_NS_PER_MS)
#define SAME_BREAK_NS      (5 * CLOCK_NS_PER_MS)
#define BREAK_FORGOTTEN_NS (2 * CLOCK_NS_PER_S)
/* Between probes of full size while large packets go. */
#define LARGE_EVERY_NS (250 * CLOCK_NS_PER_MS)
/* Probes answered in a row before a link that fell is used again; doubled, up to so many times,
 * when it falls again soon. */
#define GOOD_AGAIN       3u
#define GOOD_LARGE_AGAIN 2u
#define FALLS_MAX        4u
#define FALLS_FORGOTTEN  (20 * CLOCK_NS_PER_S)
/* A step that comes so late says that this thread had no processor: nothing was listened to. */
#define OWN_STALL_NS (100 * CLOCK_NS_PER_MS)
/* The largest size that passes is looked for to this. */
#define SIZE_STEP 64u

static void pulse_forget(struct pulse *p)
{
    p->n_missed = p->n_large_missed = 0;
    p->asked_ns = p->large_asked_ns = 0;
    p->n_good = 0;
}

void pulse_start(struct pulse *p, const struct pulse_config *config, uint64_t now_ns)
{
    *p = (struct pulse){.verdict = LINK_UNPROVED,
                        .stream = config->stream,
                        .split = config->split,
                        .full_bytes = config->full_bytes,
                        .good_bytes = WIRE_PROBE_BYTES,
                        .bad_bytes = config->full_bytes,
                        .try_bytes = config->full_bytes,
                        .renew_every_ns = config->renew_every_ns,
                        .due_ns = now_ns,
                        .since_ns = now_ns,
                        .down_ns = now_ns,
                        .every_ns = FAST_NS,
                        .renewed_ns = now_ns};
}

static uint64_t pulse_patience(const struct pulse *p)
{
    uint64_t ns = PATIENCE_PEAKS * p->peak_ns;

    return ns < PATIENCE_NS ? PATIENCE_NS : ns < PATIENCE_MAX_NS ? ns : PATIENCE_MAX_NS;
}

static void pulse_set(struct pulse *p, enum link_verdict verdict, uint64_t now_ns)
{
    if (p->verdict == LINK_ALIVE) {
        p->down_ns = now_ns;
        bool soon = now_ns - p->since_ns < FALLS_FORGOTTEN;
        p->n_falls = !soon ? 0 : p->n_falls < FALLS_MAX ? p->n_falls + 1 : p->n_falls;
        p->n_large_good = 0;
        p->good_bytes = WIRE_PROBE_BYTES;
        p->bad_bytes = p->try_bytes = p->full_bytes;
    }
    if (p->verdict != verdict)
        p->since_ns = now_ns;
    p->verdict = (uint8_t)verdict;
}

/* Nothing is answered: what that means. */
static enum link_verdict pulse_why(const struct pulse *p, uint64_t now_ns)
{
    if (p->n_breaks > 0)
        return LINK_BROKEN;
    return p->heard_ns > p->asked_ns && now_ns - p->heard_ns < 2 * pulse_patience(p) ? LINK_ONE_WAY
                                                                                     : LINK_SILENT;
}

static bool pulse_is_silent(const struct pulse *p, uint64_t now_ns)
{
    uint64_t patience = p->verdict == LINK_UNPROVED ? UNPROVED_NS : pulse_patience(p);

    if (p->asked_ns == 0)
        return false;
    if (p->n_breaks > 0 && p->verdict == LINK_ALIVE)
        return p->n_breaks > 1 || now_ns - p->asked_ns >= BROKEN_NS;
    return p->n_missed >= MISSES && now_ns - p->asked_ns >= patience;
}

static bool pulse_is_large_lost(const struct pulse *p, uint64_t now_ns)
{
    uint64_t patience = p->verdict == LINK_UNPROVED ? UNPROVED_NS : pulse_patience(p);

    return p->large_asked_ns != 0 && now_ns - p->large_asked_ns >= patience &&
           (p->stream || p->n_large_missed >= LARGE_MISSES);
}

/* A probe of the tried size did not pass. */
static void pulse_large_lost(struct pulse *p, uint64_t now_ns)
{
    if (p->try_bytes < p->bad_bytes)
        p->bad_bytes = p->try_bytes;
    /* By turns the full size, to see when it passes again, and what halves the range. */
    p->try_bytes = p->try_bytes == p->full_bytes && p->bad_bytes - p->good_bytes > SIZE_STEP
                       ? p->good_bytes + (p->bad_bytes - p->good_bytes) / 2
                       : p->full_bytes;
    pulse_set(p, LINK_LARGE, now_ns);
    p->n_large_good = 0;
    pulse_forget(p);
}

/* Is it time for a new connection? */
static bool pulse_renew_due(const struct pulse *p, uint64_t now_ns)
{
    uint64_t quiet_ns = p->answered_ns > p->renewed_ns ? p->answered_ns : p->renewed_ns;
    /* At first the other side may not know us yet, and hang up on nobody by that. */
    uint64_t every_ns = p->verdict == LINK_UNPROVED ? 2 * p->renew_every_ns : p->renew_every_ns;

    return p->renew_every_ns != UINT64_MAX && now_ns - quiet_ns >= every_ns;
}

static uint32_t pulse_renew(struct pulse *p, uint64_t now_ns)
{
    p->renewed_ns = p->due_ns = now_ns;
    p->sent_ns = 0;
    return PULSE_RENEW;
}

/* A link that is not alive, or not yet. */
static uint32_t pulse_prove(struct pulse *p, uint64_t now_ns)
{
    bool given_up = p->n_good == 0 && now_ns - p->down_ns > SLOW_AFTER_NS;
    uint64_t every_ns = given_up ? SLOW_NS : FAST_NS;
    bool first = p->verdict == LINK_UNPROVED || p->verdict == LINK_LARGE;
    uint32_t need = first ? 1 : GOOD_AGAIN << p->n_falls;

    if (p->n_breaks > 0 && now_ns - p->break_ns > BREAK_FORGOTTEN_NS)
        p->n_breaks = 0;
    if (pulse_is_silent(p, now_ns))
        pulse_set(p, pulse_why(p, now_ns), now_ns);
    p->due_ns = now_ns + every_ns;
    if (p->n_good < need) {
        if (pulse_renew_due(p, now_ns))
            return pulse_renew(p, now_ns);
        return p->sent_ns == 0 || p->held || now_ns - p->sent_ns >= every_ns ? PULSE_SEND_SMALL : 0;
    }
    if (pulse_is_large_lost(p, now_ns)) {
        pulse_large_lost(p, now_ns);
        return p->renew_every_ns == UINT64_MAX ? PULSE_SEND_SMALL : pulse_renew(p, now_ns);
    }
    return p->large_asked_ns == 0 || (!p->stream && now_ns - p->large_sent_ns >= FAST_NS)
               ? PULSE_SEND_LARGE
               : 0;
}

/* Over one stream the small ones stand behind whatever does not pass. */
static bool pulse_asks_large(const struct pulse *p)
{
    return !p->stream || p->split;
}

static uint32_t pulse_watch(struct pulse *p, const struct pulse_use *use, uint64_t now_ns)
{
    uint64_t next_ns = p->sent_ns + (p->asked_ns ? FAST_NS : use->every_ns);
    uint64_t large_ns = p->large_sent_ns + (p->large_asked_ns ? FAST_NS : LARGE_EVERY_NS);
    uint32_t todo = 0;

    if (p->sent_ns == 0 || p->held || now_ns >= next_ns) {
        todo |= PULSE_SEND_SMALL;
        next_ns = now_ns + FAST_NS;
    }
    if (pulse_asks_large(p) && (p->large_asked_ns || p->large_due || use->large)) {
        if (now_ns >= large_ns) {
            /* A stream repeats what is lost by itself. */
            if (!p->stream || p->large_asked_ns == 0)
                todo |= PULSE_SEND_LARGE;
            p->large_due = false;
            large_ns = now_ns + FAST_NS;
        }
        next_ns = large_ns < next_ns ? large_ns : next_ns;
    }
    p->due_ns = next_ns;
    return todo;
}

uint32_t pulse_step(struct pulse *p, const struct pulse_use *use, uint64_t now_ns)
{
    if (now_ns < p->due_ns)
        return 0;
    p->every_ns = use->every_ns;
    uint64_t late_ns = now_ns - p->due_ns;
    if (late_ns > OWN_STALL_NS) {
        if (p->asked_ns)
            p->asked_ns += late_ns;
        if (p->large_asked_ns)
            p->large_asked_ns += late_ns;
    }
    if (p->verdict == LINK_ALIVE) {
        if (pulse_is_silent(p, now_ns)) {
            pulse_set(p, pulse_why(p, now_ns), now_ns);
            pulse_forget(p);
            if (p->renew_every_ns != UINT64_MAX)
                return pulse_renew(p, now_ns);
        } else if (p->asked_ns == 0 && pulse_is_large_lost(p, now_ns)) {
            p->try_bytes = p->full_bytes;
            pulse_large_lost(p, now_ns);
            if (p->renew_every_ns != UINT64_MAX)
                return pulse_renew(p, now_ns);
        }
    }
    return p->verdict == LINK_ALIVE ? pulse_watch(p, use, now_ns) : pulse_prove(p, now_ns);
}

void pulse_sent(struct pulse *p, bool large, uint64_t now_ns)
{
    p->held = false;
    uint64_t *asked_ns = large ? &p->large_asked_ns : &p->asked_ns;
    uint32_t *n_missed = large ? &p->n_large_missed : &p->n_missed;

    if (*asked_ns == 0)
        *asked_ns = now_ns;
    else if (++*n_missed >= 2)
        p->n_good = large ? p->n_good : 0;
    if (large)
        p->large_sent_ns = now_ns;
    else
        p->sent_ns = now_ns;
    /* An answer is looked for soon. */
    if (p->due_ns > now_ns + FAST_NS)
        p->due_ns = now_ns + FAST_NS;
}

void pulse_held(struct pulse *p, bool large, uint64_t now_ns)
{
    uint64_t sent_ns = large ? p->large_sent_ns : p->sent_ns;

    /* That there never is room is silence, too. */
    if (!p->held || now_ns - sent_ns >= FAST_NS)
        pulse_sent(p, large, now_ns);
    p->held = !large;
    p->due_ns = now_ns + HELD_NS;
}

void pulse_on_probe(struct pulse *p, const struct wire_probe *probe, uint64_t now_ns)
{
    p->heard_ns = now_ns;
    if (p->verdict == LINK_UNPROVED && p->n_good == 0 && now_ns - p->sent_ns >= HELD_NS) {
        /* Now they know us, and can answer. */
        p->held = true;
        p->due_ns = now_ns;
    }
    if (p->verdict != LINK_ALIVE)
        return;
    if (probe->n_missed >= 2) {
        /* They do not hear our answers. */
        pulse_doubt(p, now_ns);
    } else if (probe->n_missed == 0 && p->asked_ns == 0 && p->large_asked_ns == 0 &&
               p->n_breaks == 0) {
        /* They heard our last answer, and we hear them: our own probe can wait, a little longer
         * than theirs. */
        p->sent_ns = now_ns + p->every_ns / 4;
        p->due_ns = p->sent_ns + p->every_ns;
    } else if (probe->n_missed == 0 && p->n_missed == 0 && probe->stamp_ns < p->asked_ns) {
        /* Two that cross again and again: any order that both ends know ends that. */
        p->sent_ns += p->every_ns / 4;
    }
}

void pulse_on_progress(struct pulse *p, bool large, uint64_t now_ns)
{
    if (p->verdict != LINK_ALIVE)
        return;
    if (large && p->large_asked_ns && p->stream)
        p->large_asked_ns = now_ns;
    if (large)
        return;
    if (p->asked_ns)
        p->asked_ns = now_ns;
    p->n_missed = 0;
}

static void pulse_on_large_echo(struct pulse *p, uint32_t n_bytes, uint64_t now_ns)
{
    p->large_asked_ns = 0;
    p->n_large_missed = 0;
    if (p->verdict == LINK_ALIVE)
        return;
    if (n_bytes < p->full_bytes) {
        p->good_bytes = n_bytes > p->good_bytes ? n_bytes : p->good_bytes;
        p->bad_bytes = p->bad_bytes > p->good_bytes ? p->bad_bytes : p->full_bytes;
        p->try_bytes = p->full_bytes;
    } else if (++p->n_large_good >= (p->verdict == LINK_UNPROVED ? 1 : GOOD_LARGE_AGAIN)) {
        pulse_set(p, LINK_ALIVE, now_ns);
        p->sent_ns = now_ns;
    }
}

void pulse_on_echo(struct pulse *p, const struct wire_probe *echo, uint64_t rtt_ns, uint64_t now_ns)
{
    uint64_t left_ns = now_ns - rtt_ns;

    if (echo->n_bytes < WIRE_PROBE_BYTES || echo->n_bytes > p->full_bytes)
        return;
    p->heard_ns = p->answered_ns = now_ns;
    p->peak_ns = rtt_ns > p->peak_ns ? rtt_ns : p->peak_ns - p->peak_ns / 8;
    p->n_breaks = 0;
    /* An answer to an old one says nothing of what was asked since, but that it may be late. */
    if (p->asked_ns != 0 && left_ns >= p->asked_ns) {
        p->asked_ns = 0;
        p->n_missed = 0;
    }
    p->n_good++;
    if (echo->n_bytes > WIRE_PROBE_BYTES && p->large_asked_ns != 0 && left_ns >= p->large_asked_ns)
        pulse_on_large_echo(p, echo->n_bytes, now_ns);
    if (p->verdict == LINK_ALIVE && p->asked_ns == 0 && p->large_asked_ns == 0)
        p->due_ns = p->sent_ns + p->every_ns;
    else if (p->n_good == 1 || p->verdict == LINK_UNPROVED ||
             (p->verdict != LINK_ALIVE && p->n_large_good > 0))
        p->due_ns = now_ns;
}

void pulse_hurry(struct pulse *p, uint64_t within_ns, uint64_t now_ns)
{
    uint64_t at_ns = now_ns + within_ns;

    if (p->due_ns <= at_ns)
        return;
    /* Due means that the time between two probes is over. */
    if (p->verdict == LINK_ALIVE && p->asked_ns == 0)
        p->sent_ns = 0;
    p->due_ns = at_ns;
}

void pulse_doubt(struct pulse *p, uint64_t now_ns)
{
    if (p->verdict != LINK_ALIVE)
        return;
    if (pulse_asks_large(p) && p->large_asked_ns == 0)
        p->large_due = true;
    if (p->asked_ns == 0 && (p->answered_ns == 0 || now_ns - p->answered_ns >= FAST_NS))
        pulse_hurry(p, 0, now_ns);
}

void pulse_on_break(struct pulse *p, int error, uint64_t now_ns)
{
    p->error = error;
    /* Everything that was on its way comes back at once. */
    if (p->n_breaks > 0 && now_ns - p->break_ns < SAME_BREAK_NS)
        return;
    p->n_breaks++;
    p->break_ns = now_ns;
    if (p->verdict == LINK_ALIVE) {
        if (p->asked_ns == 0)
            p->asked_ns = now_ns;
        p->due_ns = now_ns;
    }
}
