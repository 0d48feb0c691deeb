/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the daemon of this node, or starting a private one. Called by mpiexec and (the finding)
 * by motetctl.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define NODE_DAEMON_PATH_MAX 128

/* A daemon that belongs to this process: it ends when the lifeline is closed, also by this
 * process's death. */
struct node_daemon {
    pid_t pid;    /* 0: none was started */
    int lifeline; /* writing end of the pipe whose end the daemon waits for; -1: none */
    char client[NODE_DAEMON_PATH_MAX];
    char status[NODE_DAEMON_PATH_MAX];
};

/*
 * Connects to the socket that `variable` names ("MOTET_CLIENT_SOCKET"), or else to `file`
 * ("client.sock") in the user's and then the system's runtime directory. Returns the descriptor and
 * the path; or negative errno, with the path when it was named explicitly and with an empty one
 * when just none was found.
 */
int node_daemon_connect(const char *variable, const char *file, char *ret_path, size_t room);

/* Starts a private daemon and waits until it is ready. 0, or negative errno with the reason in
 * `why`. */
int node_daemon_start(struct node_daemon *ret_daemon, char *why, size_t room);
/* Lets it end and waits for that, 5 seconds at most, then kills it. Nothing to do when none was
 * started. */
void node_daemon_stop(struct node_daemon *d);

/* The first of two places relative to this program (installed, build directory) where there is a
 * file. 0 or -ENOENT. */
int node_daemon_beside(const char *installed, const char *built, char *path, size_t room);

/* The daemon: named by MOTET_MOTETD, beside this program, or where the build was to install it. 0
 * or negative errno. */
int node_daemon_program(char *path, size_t room);
