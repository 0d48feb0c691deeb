# SPDX-License-Identifier: BSD-3-Clause
"""Spawned jobs over nodes and gateways: on nodes that had no rank, from several nodes, and what happens when a node ends."""
import os

import pytest

from harness import stage


@pytest.fixture(scope='module')
def programs(installation, tmp_path_factory):
    folder = tmp_path_factory.mktemp('spawned')
    for name, source in (('spawn', 'mpi/spawn.c'), ('spawned', 'dynamic/spawned.c')):
        stage.run([installation.mpicc, '-O1', '-I', stage.ROOT, '-o', folder / name, os.path.join(stage.ROOT, 'tests', source)], 60)
    return folder


def test_on_other_nodes(shared_lab, programs):
    lab = shared_lab('gateway')
    # The parent on one side, children on the other, which had no rank.
    done = lab.mpi(['a1'], programs / 'spawn', 1, 'b1,b2', n=2)
    assert done.stdout == 'spawn: no errors\n'
    # Parents on both sides and the gateway.
    done = lab.mpi(['a1', 'b1', 'gw'], programs / 'spawn', 1, 'b1,a2,gw')
    assert done.stdout == 'spawn: no errors\n'
    done = lab.mpi(['a1', 'b1'], programs / 'spawn', 1)
    assert done.stdout == 'spawn: no errors\n'
    lab.assert_clean()
