# SPDX-License-Identifier: BSD-3-Clause
"""Jobs in which one rank does something else (absent.c): motetctl names it, on one node and over three networks."""
import os
import time

import pytest

from harness import lab as harness_lab
from harness import stage

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope='module')
def absent(installation, tmp_path_factory):
    program = str(tmp_path_factory.mktemp('absent') / 'absent')
    stage.run([installation.mpicc, '-O1', '-Wall', '-Wextra', '-Werror', '-o', program, os.path.join(HERE, 'absent.c'), '-pthread'], 60)
    return program


@pytest.fixture(scope='module')
def lab(three_networks):
    return three_networks


def findings(lab, node, found, within_s=12.0):
    """The findings of the one job, once `found(findings)` holds."""
    deadline = time.monotonic() + within_s
    while True:
        jobs = lab.motetctl(node, 'waits')
        rows = [finding for job in jobs for finding in job['findings']]
        if found(rows):
            return rows
        assert time.monotonic() < deadline, jobs
        time.sleep(0.1)


def first_of(lab, node, kind):
    return findings(lab, node, lambda rows: rows and rows[0]['kind'] == kind)[0]


@pytest.fixture
def run(lab, absent):
    """Starts a job on the hosts, `options` of mpiexec before the program, and ends it; the lab is clean afterwards."""
    jobs = []

    def start(hosts, n, call, instead, *rank, options=()):
        words = ['mpiexec', '-n', n, '-hosts', ','.join(hosts), '-ppn', -(-n // len(hosts)), *options, absent, call, instead, *rank]
        jobs.append(lab.start(hosts[0], *words))
        harness_lab.read_until(jobs[-1], f'absent: {call}', 30)
        return jobs[-1]

    yield start
    for job in jobs:
        harness_lab.stop(job)
    lab.assert_clean()


NETWORKS, NODE = ['a1', 'm1', 'c1', 'c2'], ['m1']
ALL = [7, 0, 1, 2, 3, 4, 5, 6]
CASES = [
    # call, what the last rank does instead, options, the finding's kind, its ranks, words of its text
    ('barrier', 'compute', (), 'absent', [7], 'rank 7 has not entered MPI_Barrier on MPI_COMM_WORLD (8 ranks), in which ranks 0-6 wait',
     'it computes'),
    ('allreduce', 'sleep', (), 'absent', [7], 'has not entered MPI_Allreduce on MPI_COMM_WORLD', 'it sleeps outside MPI'),
    ('bcast', 'stop', (), 'absent', [7], 'rank 7 has not entered MPI_Bcast', 'it is stopped by a signal'),
    ('ibarrier', 'receive', (), 'absent', [7], 'has not entered MPI_Ibarrier', 'it is in MPI_Recv, receive from rank 0, tag 7'),
    ('persistent', 'compute', (), 'absent', [7], 'has not started what was made with MPI_Barrier_init', 'it computes'),
    ('sub', 'receive', (), 'absent', [7], 'rank 7 has not entered MPI_Barrier on communicator',
     '(odd ones) (4 ranks), in which ranks 1, 3, 5 wait'),
    ('split', 'compute', (), 'absent', [7], 'has not entered MPI_Comm_split on MPI_COMM_WORLD', 'it computes'),
    ('duplicate', 'compute', (), 'absent', [7], 'has not entered MPI_Comm_dup on MPI_COMM_WORLD', 'it computes'),
    ('finalize', 'compute', (), 'absent', [7], 'has not entered MPI_Finalize', 'it computes'),
    ('barrier', 'ibarrier', (), 'absent', [7], 'has not entered MPI_Barrier', 'it is in MPI_Wait for MPI_Ibarrier on MPI_COMM_WORLD'),
    ('barrier', 'compute', ('-wait', 'spin'), 'absent', [7], 'has not entered MPI_Barrier', 'it computes'),
    ('ibarrier', 'compute', ('-wait', 'event'), 'absent', [7], 'has not entered MPI_Ibarrier', 'it computes'),
    ('barrier', 'compute', ('-env', 'MOTET_CHECK', 'collectives'), 'absent', [7], 'has not entered MPI_Barrier', 'it computes'),
    ('threads', 'sleep', (), 'absent', [7], 'has not entered MPI_Barrier', 'it sleeps outside MPI'),
    ('receive_absent', 'compute', ('-wait', 'spin'), 'computing', ALL, 'rank 7 computes, and ranks 0-6 wait for it',
     'MPI_Recv, receive from rank 7, tag 7'),
    ('probe', 'compute', (), 'computing', ALL, 'ranks 0-6 wait for it', 'is in MPI_Probe, receive from rank 7, tag 7'),
    ('ssend', 'compute', (), 'computing', ALL, 'rank 7 computes', 'is in MPI_Ssend, announced send to rank 7, tag 7'),
    ('send_large', 'compute', (), 'computing', ALL, 'rank 7 computes', 'is in MPI_Send, announced send to rank 7, tag 7'),
    ('partitioned', 'sleep', (), 'computing', [7, 0], 'rank 7 sleeps outside MPI, and rank 0 waits for it',
     'is in MPI_Wait, receive from rank 7, tag 7'),
]


@pytest.mark.parametrize('call, instead, options, kind, ranks, words, more', CASES, ids=[' '.join((c[0], c[1], *c[2])) for c in CASES])
def test_the_culprit_is_named_first(lab, run, call, instead, options, kind, ranks, words, more):
    """In turns over three networks and on one node; collectives without options, which take other ways there, on both."""
    at = CASES.index((call, instead, options, kind, ranks, words, more))
    for hosts in (NETWORKS, NODE) if at < 4 else (NODE,) if at % 2 else (NETWORKS,):
        job = run(hosts, 8, call, instead, options=options)
        findings(lab, hosts[0], lambda rows: rows and rows[0]['kind'] == kind and rows[0]['ranks'] == ranks and
                 words in rows[0]['text'] and more in rows[0]['text'])
        harness_lab.stop(job)


def test_two_ranks_and_the_first_line_for_people(lab, run):
    run(['a1', 'c1'], 2, 'barrier', 'compute')
    first_of(lab, 'gw1', 'absent')
    first = lab.on('gw1', 'motetctl', 'waits').stdout.splitlines()[0]
    assert 'absent: rank 1 has not entered MPI_Barrier on MPI_COMM_WORLD (2 ranks), in which rank 0 waits, the first for ' in first, first


def test_the_deadlock_behind_a_missing_rank(lab, run):
    run(['m1'], 4, 'barrier', 'receive')
    rows = findings(lab, 'm1', lambda rows: len(rows) >= 2)
    assert [(row['kind'], row['ranks']) for row in rows[:2]] == [('absent', [3]), ('deadlock', [0, 3])], rows


def test_the_rows_of_calls_and_communicators(lab, run):
    run(['m1'], 4, 'barrier', 'compute')
    first_of(lab, 'm1', 'absent')
    calls = [row for row in lab.motetctl('a1', 'queues') if row['queue'] == 'call']
    assert [(row['rank'], row['call'], row['communicator_name'], row['members'], row['form']) for row in calls] == [
        (rank, 'MPI_Barrier', 'MPI_COMM_WORLD', 4, 'blocking') for rank in range(3)]
    world = [row for row in lab.motetctl('a1', 'communicators') if row['communicator'] == 0]
    counts = [row['entered']['blocking']['count'] for row in world]
    assert counts == [calls[0]['sequence']] * 3 + [calls[0]['sequence'] - 1]
    assert [row['call'] for row in lab.motetctl('a1', 'ranks')] == ['MPI_Barrier'] * 3 + [None]
