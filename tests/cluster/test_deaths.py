# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of each part of a job at various moments: the job ends soon, says why in one line, and leaves nothing."""
import os
import re
import signal
import time

import pytest

from harness import lab as harness_lab
from harness import stage

HOSTS = ['a1', 'b1', 'a2', 'b2']
ENDS_WITHIN_S = 5.0
MOMENTS_S = [0.0, 0.03, 0.1, 0.3, 1.0]  # from the start of mpiexec: before, while and after the ranks start


@pytest.fixture
def lab(shared_lab):
    one = shared_lab('gateway')
    yield one
    one.repair()


def start_long_job(lab, programs, wait=True):
    """A job that would run for minutes. With `wait` it is there on all nodes when this returns."""
    job = lab.start_mpi(HOSTS, programs('heat2d'), 600, 1000000)
    if wait:
        wait_for_ranks(lab, programs, job, HOSTS)
    return job


def wait_for_ranks(lab, programs, job, hosts):
    deadline = time.monotonic() + 15
    while not all(lab.pids(host, programs('heat2d')) for host in hosts):
        assert time.monotonic() < deadline and job.poll() is None, harness_lab.stop(job)
        time.sleep(0.05)


def finish_soon(job, what):
    start = time.monotonic()
    code, output = harness_lab.finish(job, 20)
    assert time.monotonic() - start < ENDS_WITHIN_S, f'{what}: the job took too long to end\n{output}'
    return code, output


@pytest.mark.parametrize('host, rank', [('a1', 0), ('b2', 3)])
@pytest.mark.parametrize('number, name', [(9, 'SIGKILL'), (11, 'SIGSEGV')])
def test_a_rank_dies(lab, programs, host, rank, number, name):
    job = start_long_job(lab, programs)
    lab.signal(host, number, *lab.pids(host, programs('heat2d')))
    code, output = finish_soon(job, f'rank {rank} killed')
    assert code == 128 + number, output
    named = [line for line in output.splitlines() if re.search(rf'rank {rank}\b', line) and host in line]
    assert len(named) == 1 and re.search(rf'{name}|signal {number}', named[0]), f'not one clear message: {output}'
    lab.assert_clean()


@pytest.mark.parametrize('after_s', MOMENTS_S)
def test_mpiexec_dies(lab, programs, after_s):
    job = start_long_job(lab, programs, wait=False)
    time.sleep(after_s)
    harness_lab.stop(job)  # kill -9 of motet-lab exec, which takes mpiexec along
    lab.assert_clean()


@pytest.mark.parametrize('after_s', MOMENTS_S)
def test_a_far_daemon_dies(lab, programs, after_s):
    """The daemon of a node that has a rank: the rank goes, then the job. Its host refuses connections, so nobody waits for it."""
    job = start_long_job(lab, programs, wait=False)
    time.sleep(after_s)
    lab.lab('kill', 'b1')
    code, output = finish_soon(job, 'daemon killed')
    assert code != 0 and 'b1' in output, output
    lab.assert_clean_but('b1')
    lab.lab('start', 'b1')
    lab.wait_routes()
    lab.assert_clean()


def test_the_message_names_the_node_and_its_ranks(lab, programs):
    job = start_long_job(lab, programs)
    lab.lab('kill', 'b1')
    code, output = finish_soon(job, 'daemon killed')
    assert code == 128 + signal.SIGKILL, output
    assert [line for line in output.splitlines() if 'b1' in line] == ['mpiexec: node b1 has lost its daemon; it had rank 1'], output
    lab.lab('start', 'b1')
    lab.wait_routes()
    lab.assert_clean()


def test_a_daemon_dies_and_is_started_at_once(lab, programs):
    """As a service manager does: the new incarnation has no ranks, so the job is over."""
    job = start_long_job(lab, programs)
    lab.lab('kill', 'b1')
    lab.lab('start', 'b1')
    code, output = finish_soon(job, 'daemon restarted')
    assert code == 128 + signal.SIGKILL and re.search(r'node b1 (was restarted|has lost its daemon); it had rank 1', output), output
    lab.wait_routes()
    lab.assert_clean()


def test_the_gateway_has_ranks_too(lab, programs):
    """The home daemon cannot reach the nodes behind the one that died: these end their ranks by themselves."""
    job = lab.start_mpi(['a1', 'gw', 'b1'], programs('heat2d'), 600, 1000000)
    wait_for_ranks(lab, programs, job, ['a1', 'gw', 'b1'])
    lab.lab('kill', 'gw')
    code, output = finish_soon(job, 'gateway killed')
    assert code == 128 + signal.SIGKILL and 'node gw has lost its daemon; it had rank 1' in output, output
    lab.assert_clean_but('gw')
    lab.lab('start', 'gw')
    lab.wait_routes()
    lab.assert_clean()


@pytest.mark.parametrize('after_s', MOMENTS_S)
def test_the_home_daemon_dies(lab, programs, after_s):
    """The daemon that mpiexec talks to: all nodes notice and end the job's ranks."""
    job = start_long_job(lab, programs, wait=False)
    time.sleep(after_s)
    lab.lab('kill', 'a1')
    code, output = finish_soon(job, 'home daemon killed')
    assert code != 0 and output.strip(), output
    lab.assert_clean_but('a1')
    lab.lab('start', 'a1')
    lab.wait_routes()
    lab.assert_clean()


def test_a_node_loses_power(lab, programs):
    """Everything on the node at once, daemon and ranks; its kernel still says goodbye for them."""
    job = start_long_job(lab, programs)
    lab.lab('kill', 'b2', '--power')
    code, output = finish_soon(job, 'node killed')
    assert code != 0 and 'b2' in output, output
    lab.lab('start', 'b2')
    lab.wait_routes()
    lab.assert_clean()


def test_a_node_vanishes(lab, programs):
    """All its cables at once, silently: found by silence alone, and given up after unreachable_after (10 s)."""
    job = start_long_job(lab, programs)
    lab.lab('cut', 'b2', 'right', '--silent')
    code, output = harness_lab.finish(job, 40)
    assert code != 0 and 'b2' in output, output
    lab.lab('heal', 'b2', 'right')
    lab.wait_routes()
    lab.assert_clean(within_s=20)


def gateway_with(folder, setting):
    """The lab file of that name with a setting of the daemons."""
    with open(os.path.join(stage.ROOT, 'conf', 'examples', 'gateway.lab'), encoding='utf-8') as example:
        (folder / 'gateway.lab').write_text(f'{example.read()}\n[motetd]\n{setting}\n')
    return folder / 'gateway.lab'


def test_a_node_loses_power_for_good(new_lab, programs, tmp_path):
    """Cables and processes at once, so nobody says goodbye for it, and it does not come back: the job ends after unreachable_after, the
    others keep nothing of it and go on."""
    lab = new_lab(gateway_with(tmp_path, 'mesh.unreachable_after = 2s'))
    job = start_long_job(lab, programs)
    lab.lab('cut', 'b2', 'right', '--silent')
    lab.lab('kill', 'b2', '--power')
    code, output = harness_lab.finish(job, 30)
    assert code != 0 and 'node b2 cannot be reached any more; it had rank 3' in output, output
    lab.assert_clean_but('b2')
    assert '0.0e+00: ok' in lab.mpi(['a1', 'b1'], programs('heat2d')).stdout
    lab.assert_clean_but('b2')


def test_a_daemon_that_is_told_to_end_gives_jobs_their_time(new_lab, programs, tmp_path):
    """SIGTERM to a node that has ranks of a job started elsewhere: after drain_limit the job ends, and then the daemon."""
    lab = new_lab(gateway_with(tmp_path, 'jobs.drain_limit = 2s'))
    job = start_long_job(lab, programs)
    daemon = next(node['daemon'] for node in lab.status()['nodes'] if node['name'] == 'b1')
    start = time.monotonic()
    lab.signal('b1', 'TERM', daemon)
    code, output = harness_lab.finish(job, 20)
    assert code == 128 + signal.SIGTERM and 'rank 1 on node b1 ended the job: its node is being shut down' in output, output
    assert 1.9 < time.monotonic() - start < 10
    deadline = time.monotonic() + 5
    while any(pid == daemon for _, pid, _ in lab.processes('b1')):
        assert time.monotonic() < deadline, 'the daemon does not end'
        time.sleep(0.05)


def test_interrupt_ends_the_job(lab, programs):
    job = start_long_job(lab, programs)
    mpiexec = [pid for _, pid, command in lab.processes('a1') if command.startswith('mpiexec ')]
    lab.signal('a1', 'INT', *mpiexec)
    code, _ = finish_soon(job, 'interrupted')
    assert code == 130
    lab.assert_clean()


def test_abort_and_exit_codes(lab, programs, installation, tmp_path):
    source = tmp_path / 'ends.c'
    source.write_text('#include <mpi.h>\n#include <stdlib.h>\n#include <unistd.h>\n'
                      'int main(int argc, char **argv)\n{\n    int rank;\n    MPI_Init(&argc, &argv);\n'
                      '    MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n'
                      '    if (rank == 2 && argv[1][0] == \'a\')\n        MPI_Abort(MPI_COMM_WORLD, 42);\n'
                      '    if (rank == 2)\n        exit(7);\n    MPI_Barrier(MPI_COMM_WORLD);\n    MPI_Finalize();\n    return 0;\n}\n')
    stage.run([installation.mpicc, '-o', tmp_path / 'ends', source])
    for how, code in (('abort', 42), ('exit', 7)):
        done = lab.mpi(HOSTS, tmp_path / 'ends', how, check=False, timeout_s=20)
        assert done.returncode == code and 'rank 2' in done.stderr, done.stderr
    lab.assert_clean()


def test_the_cluster_still_works(lab, programs):
    assert '0.0e+00: ok' in lab.mpi(HOSTS, programs('heat2d')).stdout


@pytest.mark.parametrize('how', ['down', 'kill'])
def test_the_whole_lab_ends_with_a_job_in_it(new_lab, programs, how):
    """Daemons, ranks and mpiexec all at once: nothing is left on the machine."""
    lab = new_lab('gateway')
    before = outside()
    remains = harness_lab.Remains(lab)
    job = start_long_job(lab, programs)
    if how == 'down':
        lab.down()
    else:
        os.kill(harness_lab.holder_of(lab), signal.SIGKILL)
        harness_lab.Lab.up_now.remove(lab)
    remains.assert_gone(within_s=10)
    code, _ = harness_lab.finish(job, 10)
    assert code != 0
    assert not outside() - before


def outside():
    """Names that a job of a lab could have left on the machine itself. Other tests may run beside this one: their folders do not count."""
    others = re.compile(r'motet-(bench|model|fuzz)-')
    return {os.path.join(folder, name) for folder in ('/dev/shm', '/run', '/run/motet', '/tmp') if os.path.isdir(folder)
            for name in os.listdir(folder) if 'motet' in name and not others.search(name)}
