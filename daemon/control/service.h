/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon as a service of systemd: readiness, status line, watchdog, sockets that systemd holds.
 * Without systemd every call does nothing. Control thread; the only user of libsystemd here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct service;

/* NULL: no memory. */
struct service *service_new(struct node *node);
void service_free(struct service *s);

/* A descriptor, the caller's, of the listening Unix socket of this name (FileDescriptorName=) that
 * systemd passed, or -1. */
int service_socket(struct service *s, const char *name);
/* What systemd passed stays open when this is freed, for the program that takes the place of this
 * one. */
void service_keep_sockets(struct service *s);
/* Once a second: tells that the daemon is ready once every channel thread has moved, how it is, and
 * that it lives: the watchdog is only fed when every channel thread moved since the last time. */
void service_tick(struct service *s, uint64_t now_ns);
void service_reloading(struct service *s, uint64_t now_ns);
void service_reloaded(struct service *s);
/* limit_ns: how long that may take. */
void service_stopping(struct service *s, uint64_t limit_ns);
