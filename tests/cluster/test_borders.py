# SPDX-License-Identifier: BSD-3-Clause
"""Collectives over three networks with two gateways in a row: what the gateways' channels carried, by their own counters."""
import os

import pytest

from harness import stage

HOSTS = ['a1', 'a2', 'm1', 'c1', 'c2']  # two ranks each, in turn: four on the left, two in the middle, four on the right
KIB64 = 65536
N = 100
# Of each repeat, in blocks: out of gw1 to the left and into the middle, out of gw2 into the middle and to the right. A scan passes a payload
# for each run of ranks: two on each side when ranks lie in turn, of which nobody needs the last, and nothing comes before the first.
CROSSES = {
    'bcast': (0, 1, 0, 1),
    'reduce': (1, 0, 1, 0),
    'allreduce': (1, 1, 1, 1),
    'scan': (1, 2, 1, 2),
    'scan in rows': (0, 1, 0, 1),
    'allgather': (6, 4, 4, 6),
    'reduce_scatter': (4, 6, 6, 4),
    'inter_allgather': (6, 4, 4, 6),
}
BORDERS = [('gw1', 'left'), ('gw1', 'middle'), ('gw2', 'middle'), ('gw2', 'right')]


@pytest.fixture(scope='module')
def program(installation, tmp_path_factory):
    path = str(tmp_path_factory.mktemp('borders') / 'repeat')
    stage.run([installation.mpicc, '-O2', '-o', path, os.path.join(stage.ROOT, 'tests', 'coll', 'repeat.c')], 60)
    return path


def carried(lab):
    """{(node, network): bytes sent}, and the packets that were sent again anywhere."""
    bytes_out, resent = {}, 0
    for node in lab.nodes:
        for channel in lab.motetctl(node, 'counters'):
            if channel['node'] == node and channel['channel'] is not None:
                bytes_out[node, channel['name']] = channel['counters']['bytes_out']
                resent += channel['counters']['packets_resent']
    return bytes_out, resent


def run(lab, program, name, block, *environment):
    """{(gateway, network): blocks sent a repeat}, and how much of that may be resent packets."""
    before, resent_before = carried(lab)
    name, *rows = name.split(' ', 1)
    in_rows = ['-ppn', 2] if rows else []
    done = lab.on(HOSTS[0], 'env', *environment, 'mpiexec', '-n', 10, '-hosts', ','.join(HOSTS), *in_rows, program, name, block, N,
                  timeout_s=90)
    assert f'{name}: ok' in done.stdout
    after, resent = carried(lab)
    return [(after[border] - before[border]) / N / block for border in BORDERS], (resent - resent_before) * 17000 / N / block


@pytest.mark.parametrize('name', sorted(CROSSES))
def test_each_payload_crosses_each_border_once(shared_lab, program, name):
    lab = shared_lab('three-networks')
    blocks, resent = run(lab, program, name, KIB64)
    for border, got, wanted in zip(BORDERS, blocks, CROSSES[name]):
        # Headers and acknowledgements are some percent of either direction's bytes.
        assert wanted <= got <= 1.1 * wanted + 0.1 * max(CROSSES[name]) + resent, (border, blocks, resent)


def test_without_levels_they_cross_many_times(shared_lab, program):
    """The counters do see it."""
    lab = shared_lab('three-networks')
    blocks, _ = run(lab, program, 'allreduce', KIB64, 'MOTET_COLL_ALLREDUCE=recursive_doubling')
    assert max(blocks) > 2, blocks
    lab.assert_clean()
