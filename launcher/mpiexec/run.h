/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run of one job as mpiexec sees it: submits it, then carries input, output and signals between
 * this terminal and the ranks until the daemon says that the job is over. One thread, one poll loop
 * that never waits in anything else.
 *
 *      SUBMITTED -- refused ------------------------------------.
 *          | accepted                                            v
 *       RUNNING -- JobEnd ------------------------------------> OVER: writes what is left of the
 *          | second INT or TERM, -timeout, output closed         ^     output
 *       ENDING -- JobEnd, or 5 s later, or the daemon is gone ---'
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/mpiexec/submit.h"

struct run_options {
    bool tag_output;
    bool stdin_to_rank0;
    bool verbose;
    bool show_map;
    char *pattern[2];          /* of files for standard output and error; taken over */
    bool copy;                 /* what goes into files goes to the terminal, too */
    const char *status_socket; /* of the daemon; "": where motetctl looks */
    uint64_t timeout_ns;       /* 0: none */
};

/* Takes over the descriptor of the daemon's client socket. Returns the exit code for mpiexec;
 * messages have been printed. */
int run_job(int daemon_fd, const struct submit *submit, struct run_options *options);
