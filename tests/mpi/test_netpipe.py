# SPDX-License-Identifier: BSD-3-Clause
"""NetPIPE's NPmpi from the distribution's source package, compiled by our mpicc: on one node, on two nodes, through a gateway."""
import re

import pytest

from harness import inputs

MAX_BYTES = 1 << 20

pytestmark = pytest.mark.real_input


@pytest.fixture(scope='module')
def npmpi(installation):
    return inputs.netpipe(installation.mpicc, 'NPmpi')


PLACES = {'one-node': ('gateway', ['a1', 'a1']), 'two-nodes': ('gateway', ['a1', 'a2']), 'one-gateway': ('gateway', ['a1', 'b1']),
          'two-gateways': ('three-networks', ['a1', 'c1'])}
RUNS = [(place, []) for place in PLACES] + [('one-node', ['-a']), ('two-nodes', ['-I']), ('one-gateway', ['-s'])]


@pytest.mark.parametrize('place, mode', RUNS, ids=lambda value: value if isinstance(value, str) else ''.join(value) or 'pingpong')
def test_npmpi(shared_lab, npmpi, tmp_path, place, mode):
    """Sizes to 1 MiB: back and forth, with receives posted in advance (-a), with cold caches (-I), in one direction (-s)."""
    file, hosts = PLACES[place]
    lab = shared_lab(file)
    out = tmp_path / 'np.out'
    done = lab.on(hosts[0], 'mpiexec', '-n', 2, '-hosts', ','.join(hosts), npmpi, '-u', MAX_BYTES, '-n', 3, '-p', 0, '-o', out, *mode,
                  timeout_s=90)
    rows = [[float(word) for word in line.split()] for line in out.read_text().splitlines()]
    assert len(rows) > 30 and rows[-1][0] > MAX_BYTES / 2, done.stdout + done.stderr
    assert all(row[1] > 0 for row in rows), rows


def test_integrity_mode(shared_lab, npmpi, tmp_path):
    """NetPIPE's own check of what arrives (-i) in place of timing."""
    lab = shared_lab('three-networks')
    done = lab.mpi(['a1', 'c1'], npmpi, '-i', '-u', 65536, '-o', tmp_path / 'np.out', timeout_s=90)
    text = done.stdout + done.stderr
    assert re.search(r'Integrity check', text) and not re.search(r'[1-9]\d* (errors|failed)|Integrity check failed', text), text
    lab.assert_clean()
