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


@pytest.mark.parametrize('file, hosts', [('gateway', ['a1', 'a1']), ('gateway', ['a1', 'a2']), ('gateway', ['a1', 'b1']),
                                         ('three-networks', ['a1', 'c1'])],
                         ids=['one-node', 'two-nodes', 'one-gateway', 'two-gateways'])
@pytest.mark.parametrize('mode', [[], ['-I'], ['-a'], ['-s']], ids=['pingpong', 'no-cache', 'async', 'stream'])
def test_npmpi(shared_lab, npmpi, tmp_path, file, hosts, mode):
    lab = shared_lab(file)
    out = tmp_path / 'np.out'
    done = lab.on(hosts[0], 'mpiexec', '-n', 2, '-hosts', ','.join(hosts), npmpi, '-u', MAX_BYTES, '-n', 3, '-o', out, *mode,
                  timeout_s=90)
    rows = [[float(word) for word in line.split()] for line in out.read_text().splitlines()]
    assert len(rows) > 50 and rows[-1][0] > MAX_BYTES / 2, done.stdout + done.stderr
    assert all(row[1] > 0 for row in rows), rows


def test_integrity_mode(shared_lab, npmpi, tmp_path):
    """NetPIPE's own check of what arrives (-i) in place of timing."""
    lab = shared_lab('three-networks')
    done = lab.mpi(['a1', 'c1'], npmpi, '-i', '-u', 65536, '-o', tmp_path / 'np.out', timeout_s=90)
    text = done.stdout + done.stderr
    assert re.search(r'Integrity check', text) and not re.search(r'[1-9]\d* (errors|failed)|Integrity check failed', text), text
    lab.assert_clean()
