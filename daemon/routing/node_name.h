/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of nodes and the numbers made of them, by which nodes are told apart everywhere but for
 * people.
 */
#pragma once

#include <stdint.h>

#define NODE_NAME_BYTES 56u /* of nodes and networks, with the final NUL */

/* Id of a node of this name. 0 cannot be used: it stands for "none". */
uint32_t node_name_id(const char *name);
