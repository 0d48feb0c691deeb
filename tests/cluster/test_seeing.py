# SPDX-License-Identifier: BSD-3-Clause
"""What motetctl shows of a running cluster, and that waiting costs nothing."""
import os
import time

import pytest
from harness import lab as harness_lab

TICKS_PER_S = os.sysconf('SC_CLK_TCK')


@pytest.fixture(scope='module')
def lab(shared_lab):
    return shared_lab('three-networks')


@pytest.fixture
def hanging(lab, programs):
    """A job whose rank 0 (on a1) waits for tag 7 while a message with tag 9 from rank 1 (on c1) lies there."""
    job = lab.start_mpi(['a1', 'c1'], programs('hang'))
    harness_lab.read_until(job, 'rank 0 waits for tag 7', 20)
    yield job
    harness_lab.stop(job)
    lab.assert_clean()


def queue_rows(lab, node, found, within_s=5.0):
    """The rows of the view `queues` once `found(rows)` holds."""
    deadline = time.monotonic() + within_s
    while True:
        rows = lab.motetctl(node, 'queues')
        if found(rows):
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.1)


def has(rows, queue, **wanted):
    return any(row.get('queue') == queue and all(row.get(key) == value for key, value in wanted.items()) for row in rows)


def test_a_hung_receive_and_the_message_beside_it(lab, hanging):
    rows = queue_rows(lab, 'a1', lambda r: has(r, 'posted', tag=7) and has(r, 'unexpected', tag=9))
    assert has(rows, 'posted', rank=0, tag=7, peer=1)
    assert has(rows, 'unexpected', rank=0, tag=9, peer=1, bytes=1000)
    waiting = next(row for row in rows if row['queue'] == 'posted')
    assert 'communicator' in waiting and waiting['age_ms'] >= 0, waiting


def test_the_queues_of_a_stopped_rank(lab, hanging, programs):
    pids = lab.pids('a1', programs('hang'))
    queue_rows(lab, 'a1', lambda r: has(r, 'posted', tag=7))
    lab.signal('a1', 'STOP', *pids)
    try:
        assert has(lab.motetctl('a1', 'queues'), 'posted', tag=7)
    finally:
        lab.signal('a1', 'CONT', *pids)


@pytest.mark.parametrize('view', ['info', 'nodes', 'networks', 'channels', 'links', 'routes', 'jobs', 'ranks', 'counters'])
def test_every_view_as_table_and_data(lab, hanging, view):
    assert lab.motetctl('gw1', view) is not None
    assert lab.on('a1', 'motetctl', view).stdout.strip()


def cpu_seconds(lab, node, pid):
    """Processor time of a process of the lab with all its threads."""
    words = lab.on(node, 'cat', f'/proc/{pid}/stat').stdout.rsplit(')', 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS_PER_S


def test_an_idle_daemon_uses_no_processor(lab):
    """Under 0.1 % of a core; over 12 s that is one tick of the clock that counts, with one more for its rounding."""
    daemons = {node['name']: node['daemon'] for node in lab.status()['nodes']}
    time.sleep(6)  # what ran before has to settle
    before = {name: cpu_seconds(lab, name, pid) for name, pid in daemons.items()}
    start = time.monotonic()
    time.sleep(12)
    elapsed = time.monotonic() - start
    used = {name: (cpu_seconds(lab, name, pid) - before[name]) / elapsed for name, pid in daemons.items()}
    assert max(used.values()) <= 0.001 + 1.5 / TICKS_PER_S / elapsed, used


def test_eight_waiting_ranks_use_no_processor(lab, programs):
    """8 ranks in MPI_Recv or MPI_Barrier on one node: under 2 % of a core together."""
    job = lab.start('m1', 'mpiexec', '-n', 8, '-hosts', 'm1', programs('hang'))
    harness_lab.read_until(job, 'rank 0 waits', 20)
    time.sleep(3)
    pids = lab.pids('m1', programs('hang'))
    assert len(pids) == 8
    before = sum(cpu_seconds(lab, 'm1', pid) for pid in pids)
    start = time.monotonic()
    time.sleep(6)
    used = (sum(cpu_seconds(lab, 'm1', pid) for pid in pids) - before) / (time.monotonic() - start)
    harness_lab.stop(job)
    assert used < 0.02, f'{used * 100:.1f} % of a core'
    lab.assert_clean()
