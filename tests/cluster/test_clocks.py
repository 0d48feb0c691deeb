# SPDX-License-Identifier: BSD-3-Clause
"""Clocks of nodes that are wrong: a daemon that comes back with another one is let in at once, whatever the others have seen of it."""
import os
import time

import pytest

from harness import lab as harness_lab
from harness import stage

LAB = '[network lan]\nnodes = n1 n2\n'
DAY_S = 86400
SHIM = '''
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
/* The wall clock, wrong by as many seconds as a file says; the monotonic one is right. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    long offset = 0;
    FILE *f = id == CLOCK_REALTIME ? fopen(getenv("TEST_CLOCK"), "re") : NULL;
    if (f && fscanf(f, "%ld", &offset) == 1)
        ts->tv_sec += offset;
    if (f)
        fclose(f);
    return rc;
}
'''


@pytest.fixture
def clock(installation, tmp_path):
    """A function that sets the wall clock of all daemons that start from now on; its attribute: such a daemon."""
    (tmp_path / 'shim.c').write_text(SHIM)
    stage.run(['cc', '-shared', '-fPIC', '-O2', '-o', tmp_path / 'shim.so', tmp_path / 'shim.c'])
    motetd = os.path.join(installation.prefix, 'sbin', 'motetd')
    wrapper = tmp_path / 'motetd'
    wrapper.write_text(f'#!/bin/sh\nexport TEST_CLOCK={tmp_path}/clock LD_PRELOAD={tmp_path}/shim.so\nexec {motetd} "$@"\n')
    wrapper.chmod(0o755)

    def set_clock(offset_s):
        (tmp_path / 'clock').write_text(str(offset_s))
    set_clock.motetd = str(wrapper)
    return set_clock


def test_a_clock_was_ahead(installation, namespaces, clock, programs, tmp_path):
    """Ahead by a day, then right, then a month behind: the daemon comes back within seconds and runs jobs, and what it takes for a number
    of its own is later each time."""
    file = tmp_path / 'two.lab'
    file.write_text(LAB)
    clock(DAY_S)
    lab = harness_lab.Lab(installation, str(file), tmp_path / 'logs', '--motetd', clock.motetd)
    try:
        lab.wait_routes()
        epochs = [epoch_of(lab)]
        for offset_s in (0, -30 * DAY_S):
            clock(offset_s)
            lab.lab('kill', 'n2')
            lab.lab('start', 'n2')
            deadline = time.monotonic() + 15
            while True:
                done = lab.mpi(['n1', 'n2'], programs('ring'), check=False)
                if done.returncode == 0:
                    break
                assert time.monotonic() < deadline, done.stdout + done.stderr
                time.sleep(0.1)
            epochs.append(epoch_of(lab))
        assert epochs[1] == epochs[0] + 1 and epochs[2] == epochs[1] + 1, epochs
        with open(os.path.join(lab.log_dir, 'n2.log'), encoding='utf-8') as log:
            assert log.read().count('clock was ahead once or has been set back') == 2
    finally:
        lab.down()


def epoch_of(lab):
    return next(row['epoch'] for row in lab.motetctl('n1', 'nodes') if row['node'] == 'n2')
