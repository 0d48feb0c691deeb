/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/binding.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "launcher/cli/number.h"

#define BINDING_LEVELS "hwthread, core, l1cache, l2cache, l3cache, numa, socket or machine"

/* The first n characters of text as a level; BINDING_N_LEVELS: it is none. */
static uint32_t binding_level_of(const char *text, size_t n)
{
    static const struct {
        const char *name;
        uint32_t level;
    } names[] = {
        {"none", BINDING_NONE},         {"core", BINDING_CORE},       {"rr", BINDING_CORE},
        {"hwthread", BINDING_HWTHREAD}, {"pu", BINDING_HWTHREAD},     {"l1", BINDING_L1CACHE},
        {"l1cache", BINDING_L1CACHE},   {"l2", BINDING_L2CACHE},      {"l2cache", BINDING_L2CACHE},
        {"l3", BINDING_L3CACHE},        {"l3cache", BINDING_L3CACHE}, {"numa", BINDING_NUMA},
        {"socket", BINDING_SOCKET},     {"package", BINDING_SOCKET},  {"machine", BINDING_MACHINE},
        {"board", BINDING_MACHINE},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == n && strncasecmp(names[i].name, text, n) == 0)
            return names[i].level;
    return BINDING_N_LEVELS;
}

/* A word behind a colon; words that ask for what is always done are fine. */
static bool binding_is_granted(const char *text, size_t n)
{
    static const char *const words[] = {"overload-allowed", "overload", "if-supported",
                                        "oversubscribe", "span"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncasecmp(words[i], text, n) == 0)
            return true;
    return false;
}

int binding_parse_to(struct binding_options *b, const char *text, char *why, size_t room)
{
    size_t n = strcspn(text, ":");
    uint32_t level = binding_level_of(text, n), width = 0;
    const char *rest = text + n + (text[n] == ':');

    if (level < BINDING_N_LEVELS && text[n] && !binding_is_granted(rest, strlen(rest)) &&
        (level == BINDING_NONE ||
         number_parse(rest, strlen(rest), 1, BINDING_WIDTH_MAX, &width) < 0))
        level = BINDING_N_LEVELS;
    if (level == BINDING_N_LEVELS) {
        snprintf(why, room, "expected none, " BINDING_LEVELS ", and :N for N of them");
        return -EINVAL;
    }
    b->to_given = true;
    b->to = level;
    b->width = width;
    return 0;
}

/* Modifiers, each with a colon or, after the first, a comma before it. */
static int binding_parse_modifiers(struct binding_options *b, const char *text, char *why,
                                   size_t room)
{
    while (*text) {
        size_t n = strcspn(++text, ":,");
        uint32_t width = 0;
        bool pe = n > 3 && strncasecmp(text, "pe=", 3) == 0;
        if (pe && number_parse(text + 3, n - 3, 1, BINDING_WIDTH_MAX, &width) == 0) {
            b->width = width;
            if (!b->to_given)
                b->to = BINDING_CORE;
        } else if (!binding_is_granted(text, n)) {
            snprintf(why, room, "'%.*s': expected pe=N, N at most %u", (int)(n > 60 ? 60 : n), text,
                     BINDING_WIDTH_MAX);
            return -EINVAL;
        }
        text += n;
    }
    return 0;
}

/* "ppr:N:node": how many characters that is; 0: it is not that. */
static size_t binding_parse_ppr(struct hosts_mapping *m, const char *text)
{
    if (strncasecmp(text, "ppr:", 4) != 0)
        return 0;
    size_t n = strcspn(text + 4, ":");
    if (strncasecmp(text + 4 + n, ":node", 5) != 0 || (text[4 + n + 5] && text[4 + n + 5] != ':') ||
        number_parse(text + 4, n, 1, HOSTS_SLOTS_MAX, &m->ppn) < 0)
        return 0;
    return 4 + n + 5;
}

int binding_parse_map(struct binding_options *b, struct hosts_mapping *m, const char *text,
                      char *why, size_t room)
{
    size_t n = binding_parse_ppr(m, text);

    if (n > 0)
        return binding_parse_modifiers(b, text + n, why, room);
    n = strcspn(text, ":");
    uint32_t level = binding_level_of(text, n);
    m->by_node = n == 4 && strncasecmp(text, "node", 4) == 0;
    if (m->by_node || (n == 4 && strncasecmp(text, "slot", 4) == 0))
        return binding_parse_modifiers(b, text + n, why, room);
    if (level == BINDING_NONE || level == BINDING_N_LEVELS) {
        snprintf(why, room, "expected slot, node, ppr:N:node, " BINDING_LEVELS);
        return -EINVAL;
    }
    b->over = level;
    if (!b->to_given)
        b->to = level;
    return binding_parse_modifiers(b, text + n, why, room);
}
