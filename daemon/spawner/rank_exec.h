/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting one rank: fork, become what the daemon asked for, exec. Called by the spawner, which has
 * a single thread, so that everything may be used between fork and exec. The exec pipe closes by
 * itself when exec succeeds and carries one struct rank_exec_failure when a step fails.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rank_exec_plan {
    char **argv; /* n_argv + a NULL */
    char **env;  /* complete, NULL at the end */
    const char *wdir;
    const char *path; /* folders in which argv[0] is looked for; NULL: those of PATH in env */
    uid_t uid;
    gid_t gid;
    mode_t umask; /* (mode_t)-1: unchanged */
    bool bound;
    cpu_set_t cpus;
    int fds[3]; /* become the rank's descriptors 0 to 2; stay open in the caller */
};

enum rank_exec_step { STEP_PREPARE, STEP_GROUP, STEP_USER, STEP_DIRECTORY, STEP_BIND, STEP_EXEC };

struct rank_exec_failure {
    int32_t step;  /* enum rank_exec_step */
    int32_t error; /* errno */
};

/* Returns the process id and the reading end of the exec pipe, nonblocking; or -errno. */
int rank_exec_start(const struct rank_exec_plan *plan, int *ret_pipe);

/* The failure in words: "execve 'foo': No such file or directory". */
void rank_exec_explain(const struct rank_exec_failure *failure, const char *argv0, const char *wdir,
                       uint32_t uid, uint32_t gid, char *text, size_t room);

/* Drops all but the last of several values of a name, in place. */
void rank_exec_unique_env(char **env);
