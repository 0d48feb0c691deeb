# SPDX-License-Identifier: BSD-3-Clause
"""What motetctl shows of a running cluster, and that waiting costs nothing."""
import json
import os
import sys
import time

import pytest

from harness import lab as harness_lab
from harness import schema

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


@pytest.mark.parametrize('view', ['info', 'nodes', 'networks', 'channels', 'links', 'routes', 'jobs', 'ranks', 'communicators', 'counters'])
def test_every_view_as_table_and_data(lab, hanging, view):
    assert lab.motetctl('gw1', view) is not None
    assert lab.on('a1', 'motetctl', view).stdout.strip()


ASK = """import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
s.connect('/run/motet/status.sock')
f = s.makefile('rw')
for line in sys.argv[1:]:
    print(line, file=f, flush=True)
    print(f.readline(), end='')
"""


def ask(lab, node, *requests):
    """Replies of the node's status socket to requests, each checked against the schema."""
    lines = [json.dumps(request) for request in requests]
    replies = [json.loads(line) for line in lab.on(node, sys.executable, '-c', ASK, *lines).stdout.splitlines()]
    for request, reply in zip(requests, replies, strict=True):
        schema.check(request, reply)
    return replies


def test_every_reply_fits_the_schema(lab, hanging):
    subjects = [subject for subject in schema.ROWS if subject != 'set']
    replies = ask(lab, 'a1', *({'get': subject} for subject in subjects), {'get': 'links', 'node': 'c1'})
    # The program that hangs has sent no large message within a node.
    empty = [subject for subject, reply in zip(subjects, replies, strict=False) if not reply['data']]
    assert empty == ['copies'], empty
    assert all(reply['ok'] and 'errors' not in reply for reply in replies), replies


def finding(lab, node, kind, within_s=8.0):
    """The texts of what `motetctl waits` finds of this kind, once there are any."""
    deadline = time.monotonic() + within_s
    while True:
        jobs = lab.motetctl(node, 'waits')
        texts = [found['text'] for job in jobs for found in job['findings'] if found['kind'] == kind]
        if texts:
            return texts
        assert time.monotonic() < deadline, jobs


def test_a_deadlock_over_two_nodes_is_named(lab, hanging):
    """Rank 0 waits for a tag that nobody sends, rank 1 for rank 0 in a barrier; asked on a third node."""
    deadlock, = finding(lab, 'm1', 'deadlock')
    assert 'rank 0 waits for rank 1 (receive, tag 7)' in deadlock and 'rank 1 waits for rank 0 (receive, collective)' in deadlock
    assert any('waits for tag 7 from rank 1' in text and 'tag 9 from rank 1' in text for text in finding(lab, 'm1', 'mismatch'))
    people = lab.on('c1', 'motetctl', 'waits').stdout
    assert 'deadlock: ' in people and '2 ranks: 2 waiting' in people


def test_a_deadlock_on_one_node_is_named(lab, programs):
    job = lab.start('m1', 'mpiexec', '-n', 3, '-hosts', 'm1', programs('hang'))
    harness_lab.read_until(job, 'rank 0 waits for tag 7', 20)
    finding(lab, 'm1', 'deadlock')
    harness_lab.stop(job)
    lab.assert_clean()


@pytest.mark.alone  # a hand-shake that takes too long is a stranger's
def test_the_doctor_on_a_cluster_that_is_well_and_one_that_is_not(lab):
    lab.wait_routes()
    rows = lab.motetctl('a1', 'doctor')
    assert {row['node'] for row in rows} == set(lab.nodes) | {'*'}
    assert [row for row in rows if row['state'] != 'ok' and row['check'] != 'cores'] == []
    lab.lab('cut', 'c2', 'right')
    try:
        deadline = time.monotonic() + 15
        while True:
            done = lab.on('a1', 'motetctl', 'doctor', check=False)
            lines = [' '.join(line.split()) for line in done.stdout.splitlines()]
            if 'fail c1 links no control connection to node c2 on network right' in lines:
                break
            assert time.monotonic() < deadline, done.stdout
        assert done.returncode == 1
        assert any(line.startswith('fail c2 answer') or line.startswith('warn a1 nodes c2') for line in lines), lines
        local = lab.motetctl_any('c2', 'doctor', '--node', 'c2')
        assert any(row['check'] == 'channels' and row['state'] == 'fail' for row in local), local
    finally:
        lab.lab('heal', 'c2', 'right')
    lab.wait_routes()


def test_metrics_of_a_gateway(lab):
    text = lab.on('gw1', 'motetctl', 'metrics').stdout
    assert 'motet_link_up{node="gw1",to="a1",network="left"} 1' in text
    assert 'motet_node_reachable{node="gw1",to="c2"} 1' in text
    assert '# TYPE motet_channel_packets_forwarded_total counter' in text


def test_limits_and_nodes_that_do_not_answer_are_told(lab, hanging):
    reply, = ask(lab, 'a1', {'get': 'ranks', 'limit': 1})
    assert len(reply['data']) == 2 and 'truncated' not in reply, reply
    daemon = next(node['daemon'] for node in lab.status()['nodes'] if node['name'] == 'm1')
    lab.signal('m1', 'STOP', daemon)
    try:
        everybody, one = ask(lab, 'a1', {'get': 'ranks'}, {'get': 'info', 'node': 'm1'})
    finally:
        lab.signal('m1', 'CONT', daemon)
    assert len(everybody['data']) == 2
    assert [error['node'] for error in everybody['errors']] == ['m1'], everybody
    assert everybody['errors'][0]['code'] in ('no_answer', 'unreachable')
    assert not one['ok'] and one['error']['code'] in ('no_answer', 'unreachable') and 'node m1: ' in one['error']['message'], one
    lab.wait_routes()


def test_a_daemon_that_hangs_is_named_and_given_up(lab, hanging, programs):
    """Stopped, not dead: the doctor of another node names it within seconds, `waits` tells whose ranks are not seen, and after
    unreachable_after (10 s) the job ends. When the daemon goes on it ends the ranks that it has."""
    daemon = next(node['daemon'] for node in lab.status()['nodes'] if node['name'] == 'c1')
    lab.signal('c1', 'STOP', daemon)
    try:
        stopped = time.monotonic()
        while not any(row['node'] == 'c1' and row['check'] == 'answer' and row['state'] == 'fail'
                      for row in lab.motetctl_any('a1', 'doctor')):
            assert time.monotonic() < stopped + 4
        unseen, = finding(lab, 'a1', 'unseen')
        assert unseen == 'rank 0 waits for rank 1, which is on a node that does not answer'
        code, output = harness_lab.finish(hanging, 20)
        assert code != 0 and 'node c1 cannot be reached any more; it had rank 1' in output, output
        assert time.monotonic() - stopped > 8, 'unreachable_after'
    finally:
        lab.signal('c1', 'CONT', daemon)
    deadline = time.monotonic() + 10
    while lab.pids('c1', programs('hang')):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    lab.wait_routes()


def cpu_seconds(lab, node, pid):
    """Processor time of a process of the lab with all its threads."""
    words = lab.on(node, 'cat', f'/proc/{pid}/stat').stdout.rsplit(')', 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS_PER_S


def run_seconds(lab, node, pid):
    """As cpu_seconds, as the scheduler counts it in nanoseconds: ticks charge whoever is met by one with all of it."""
    tasks = lab.on(node, 'sh', '-c', f'cat /proc/{pid}/task/*/schedstat').stdout.splitlines()
    return sum(int(line.split()[0]) for line in tasks) / 1e9


@pytest.mark.alone
def test_an_idle_daemon_uses_no_processor(lab):
    """Under 0.1 % of a core for each channel (a gateway has two) in one of three windows: what ran before may still have to settle in
    the first, and a machine that is busy with other things makes what little is done dearer."""
    daemons = {node['name']: node['daemon'] for node in lab.status()['nodes']}
    allowed = {name: 0.002 if name.startswith('gw') else 0.001 for name in daemons}
    time.sleep(2)
    windows = []
    for _ in range(3):
        before = {name: run_seconds(lab, name, pid) for name, pid in daemons.items()}
        start = time.monotonic()
        time.sleep(4)
        elapsed = time.monotonic() - start
        windows.append({name: (run_seconds(lab, name, pid) - before[name]) / elapsed for name, pid in daemons.items()})
        if all(share <= allowed[name] for name, share in windows[-1].items()):
            return
    raise AssertionError(f'shares of a core in each window: {windows}')


@pytest.mark.alone
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
