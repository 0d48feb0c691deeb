# SPDX-License-Identifier: BSD-3-Clause
"""One user opens and keeps all the connections that it can get to a node's sockets: the starts of others go as if nothing were, and
the daemon says who was refused what."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from harness import lab as harness_lab
from harness import stage

PROGRAM = os.path.join(stage.ROOT, 'tests', 'hostile', 'hoarder.py')
N_CONNECTIONS = int(os.environ.get('MOTET_HOARDER_N', '2048'))
N_STARTS = 16
OTHER = ['setpriv', '--reuid', '12345', '--regid', '12345', '--clear-groups']
HOARDER = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
WAYS = {'client': ('idle', 'half', 'drip'), 'status': ('idle', 'half', 'drip', 'ask')}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs other users, so root')


@pytest.fixture(scope='module')
def lab(shared_lab):
    one = shared_lab('one-network')
    one.wait_routes()
    return one


@pytest.fixture(scope='module')
def ring(programs):
    """An MPI program where every user can read it."""
    folder = tempfile.mkdtemp(prefix='motet-suite-')
    os.chmod(folder, 0o755)
    shutil.copy(programs('ring'), folder)
    yield os.path.join(folder, 'ring')
    shutil.rmtree(folder)


@pytest.fixture
def hoarders(lab):
    """All ways of hoarding at once, on both sockets of n1."""
    started = []
    for name, ways in WAYS.items():
        for how in ways:
            started.append(subprocess.Popen(
                lab.on_words('n1', [sys.executable, PROGRAM, f'/run/motet/{name}.sock', N_CONNECTIONS // len(ways) + 1, how]),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True))
    try:
        for p in started:
            harness_lab.read_until(p, 'holding', 60)
        yield started
    finally:
        for p in started:
            p.stdin.close()
            p.wait(timeout=30)
            p.stdout.close()


def start(lab, who, program):
    begin = time.monotonic()
    done = lab.on('n1', *who, 'mpiexec', '-n', 2, '-ppn', 1, '-hosts', 'n1,n2', program, timeout_s=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.monotonic() - begin


def test_others_start(lab, ring, hoarders):
    """While a user holds what it can, everybody else starts jobs, and his own attempts are refused with the limit's name."""
    assert all(p.poll() is None for p in hoarders)
    # First, while none of his connections is as old as the daemon lets them be: later it closes them, and there is room until he opens the next.
    for words in (['mpiexec', '-n', 2, ring], ['motetctl', 'nodes']):
        refused = lab.on('n1', *HOARDER, *words, check=False)
        assert refused.returncode != 0 and 'user_connections = 1024' in refused.stderr, refused.stderr
    taken = [start(lab, who, ring) for _ in range(N_STARTS // 2) for who in ([], OTHER)]
    # A start takes 0.1 to 0.3 s here; one that waits for somebody's time to be over takes ten.
    assert max(taken) < 5, taken
    assert all(p.poll() is None for p in hoarders)
    rows = [row for row in lab.motetctl_any('n1', 'doctor') if row['node'] == 'n1' and row['check'] == 'quotas']
    assert any(row['state'] == 'warn' and 'user 65534' in row['text'] and 'user_connections' in row['text'] for row in rows), rows
    with open(os.path.join(lab.log_dir, 'n1.log'), encoding='utf-8') as file:
        lines = [line for line in file if 'refused user 65534' in line]
    assert 1 <= len(lines) <= 12, lines


def test_all_is_given_back(lab, ring):
    """When they are gone that user starts jobs again, and nothing is left of him."""
    deadline = time.monotonic() + 20
    while lab.on('n1', *HOARDER, 'mpiexec', '-n', 4, '-hosts', 'n1,n2', ring, check=False).returncode != 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    lab.assert_clean()
