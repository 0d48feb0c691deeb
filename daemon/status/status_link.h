/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why no data passes a link, in words for people: from the verdict of one end as its link state
 * tells it. Used by the views of links and by the doctor. Control thread.
 */
#pragma once

#include <stdbool.h>

#include "proto/control.pb-c.h"

struct status_node;
struct topology_node;

struct status_link_words {
    char text[256];   /* what is so: link, network, direction */
    char advice[256]; /* what to look at */
};

/* The link of `from` that `a` describes. False: it has no fault. */
bool status_link_fault(const struct status_node *node, const struct topology_node *from,
                       const Motet__Adjacency *a, struct status_link_words *ret_words);
