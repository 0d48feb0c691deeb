/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status socket: one JSON object per line both ways (proto/status.schema.json). A request is
 * answered from this node's knowledge, or from all nodes', which are asked by mail; one that does
 * not answer in time is named in the reply. Who may see what follows from the socket's credentials.
 * Control thread; jansson lives in the status files only.
 *
 *     {"get":"queues","job":"4049c22c81710001","rank":3,"id":1}
 *     {"version":1,"id":1,"ok":true,"data":[...]}
 */
#pragma once

#include <stdint.h>

struct status_node;
struct status;

/* Listens on fd (taken over). NULL: no memory. */
struct status *status_new(struct status_node *node, int listen_fd);
void status_free(struct status *status);

/* Mail: another daemon asks; another daemon answers. */
void status_on_query(struct status *status, uint32_t src_node, const uint8_t *body, uint32_t len);
void status_on_reply(struct status *status, uint32_t src_node, const uint8_t *body, uint32_t len);
