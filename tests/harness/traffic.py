# SPDX-License-Identifier: BSD-3-Clause
"""Checked messages without end while a network does its worst: the program tests/cluster/pauses.c, what it counts, and rules of nftables
that drop what comes into a node."""
import os
import re

from . import lab as harness_lab
from . import stage

CONTROL_PORT = 7117


def build(installation, folder):
    program = str(folder / 'pauses')
    source = os.path.join(stage.ROOT, 'tests', 'cluster', 'pauses.c')
    stage.run([installation.mpicc, '-O1', '-Wall', '-Wextra', '-Werror', '-o', program, source], 60)
    return program


def block(lab, node, network, rule):
    """This rule for what comes into the node over a network, after everything of the control port was let through."""
    rules = [f'tcp sport {CONTROL_PORT} accept', f'tcp dport {CONTROL_PORT} accept', rule]
    lab.on(node, 'sh', '-c', ' && '.join(
        ['nft add table inet silence', 'nft add chain inet silence in "{type filter hook input priority 0;}"'] +
        [f'nft add rule inet silence in iifname {network} {one}' for one in rules]))


def mend(lab, node):
    lab.on(node, 'nft', 'delete', 'table', 'inet', 'silence')


def finish(job, seconds):
    """The counts of a run of `pauses`, none of which but the messages may be more than 0, and the longest pause."""
    code, output = harness_lab.finish(job, seconds)
    found = re.search(r'messages (\d+) lost 0 doubled 0 reordered 0 corrupted 0 longest (\d+) ms', output)
    assert code == 0 and found, output
    return int(found[1]), int(found[2])
