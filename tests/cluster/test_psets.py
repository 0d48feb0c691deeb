# SPDX-License-Identifier: BSD-3-Clause
"""Process sets over two networks: every rank knows the same ones, and they hold the ranks of the nodes and networks that they name."""
import os
import re

from harness import stage

HOSTS = ['a1', 'b1', 'gw', 'a2']
NETWORKS = {'left': {'a1', 'a2', 'gw'}, 'right': {'gw', 'b1'}}


def sets_of(output):
    """name -> (kind, ranks)"""
    return {m[1]: (m[2], [int(word) for word in m[4].split()])
            for m in re.finditer(r'^pset (\S+) (\w+) (\d+):(.*)$', output, re.M)}


def test_sets_of_nodes_and_networks(shared_lab, installation, tmp_path):
    program = str(tmp_path / 'psets')
    stage.run([installation.mpicc, '-I', stage.ROOT, '-o', program, os.path.join(stage.ROOT, 'tests', 'topo', 'psets.c')], 60)
    lab = shared_lab('gateway')
    found = sets_of(lab.mpi(HOSTS, program).stdout)
    wanted = {f'motet://node/{host}': ('node', [rank]) for rank, host in enumerate(HOSTS)}
    for network, nodes in NETWORKS.items():
        wanted[f'motet://network/{network}'] = ('network', [rank for rank, host in enumerate(HOSTS) if host in nodes])
    wanted.update({'mpi://WORLD': ('world', [0, 1, 2, 3]), 'mpi://SELF': ('self', [0])})
    assert found == wanted
    lab.assert_clean()
