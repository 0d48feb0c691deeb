# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that flood one that does not drain (flood.c) and then talk to another one: that one gets its messages at once."""
import os

import pytest

from harness import lab as harness_lab
from harness import stage

HERE = os.path.dirname(os.path.abspath(__file__))
# Announcements of these fill what the destination's node holds for a rank several times over.
N_MESSAGES = 40000


@pytest.fixture(scope='module')
def flood(installation, tmp_path_factory):
    program = str(tmp_path_factory.mktemp('flood') / 'flood')
    stage.run([installation.mpicc, '-O1', '-Wall', '-Wextra', '-Werror', '-o', program, os.path.join(HERE, 'flood.c')], 60)
    return program


def counter(lab, node, name):
    return sum(row['counters'].get(name, 0) for row in lab.motetctl_any('a1', 'counters') if row['node'] == node)


# Rank 0 floods rank 1, then talks to the last one: on another node on the way, beyond, and beside the flooded one.
@pytest.mark.parametrize('hosts, how', [('a1,c1,m1', 'stop'), ('a1,c1,c2', 'compute'), ('a1,c1,c1', 'stop')])
def test_a_flooded_rank_holds_up_nobody_else(three_networks, flood, hosts, how):
    lab = three_networks
    before = counter(lab, 'a1', 'messages_aside')
    words = [word for host in hosts.split(',') for word in (':', '-n', 1, '-host', host, flood, N_MESSAGES, how)]
    job = lab.start('a1', 'mpiexec', *words[1:])
    try:
        harness_lab.read_until(job, 'flood: passed', 60)
        assert counter(lab, 'a1', 'messages_aside') > before
        for pid in lab.pids('c1', flood):
            lab.signal('c1', 'USR1', pid)
            lab.signal('c1', 'CONT', pid)
        code, output = harness_lab.finish(job, 120)
        assert code == 0 and 'flood: done' in output, output
    finally:
        harness_lab.stop(job)
    lab.assert_clean()
