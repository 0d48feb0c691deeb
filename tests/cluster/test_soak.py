# SPDX-License-Identifier: BSD-3-Clause
"""Objects come and go across a gateway, and nothing stays: neither in the ranks nor in the daemons on the way."""
import os

from harness import stage

SECONDS = float(os.environ.get('MOTET_SOAK_S', '4'))
HOSTS = ['a1', 'b1', 'a2']
# What a daemon may keep: its flows' windows and held messages fill up once.
DAEMON_GROWTH_KB = 4096


def resident_kb(lab, node):
    """Of the node's daemon."""
    pids = [pid for _, pid, command in lab.processes(node) if 'sbin/motetd' in command.split(' ')[0]]
    assert len(pids) == 1, lab.processes(node)
    status = lab.on(node, 'cat', f'/proc/{pids[0]}/status').stdout
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith('VmRSS')))


def test_churn_over_a_gateway(new_lab, installation, tmp_path):
    program = str(tmp_path / 'soak')
    stage.run([installation.mpicc, '-O1', '-o', program, os.path.join(stage.ROOT, 'tests', 'mpi', 'soak.c')], 60)
    lab = new_lab('gateway')
    lab.mpi(HOSTS, program, 200, 10)
    before = {node: resident_kb(lab, node) for node in lab.nodes}
    output = lab.mpi(HOSTS, program, 1000000, SECONDS, timeout_s=60 + 4 * SECONDS).stdout
    assert 'memory grew by' in output, output
    grown = {node: resident_kb(lab, node) - before[node] for node in lab.nodes}
    assert max(grown.values()) < DAEMON_GROWTH_KB, grown
    lab.assert_clean()
