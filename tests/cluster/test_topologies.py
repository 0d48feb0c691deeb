# SPDX-License-Identifier: BSD-3-Clause
"""Programs that check their own results, over every example cluster: the plainest statement of what Motet is for."""
import pytest

from harness import lab as harness_lab

# Four hosts as far from one another as the topology has them.
FAR = {
    'one-network': ['n1', 'n2', 'n3', 'n4'],
    'gateway': ['a1', 'b1', 'a2', 'b2'],
    'three-networks': ['a1', 'c1', 'a2', 'c2'],
    'two-rails': ['n1', 'n2', 'n3'],
    'ring': ['n1', 'e1', 'w1', 'g2'],
    'parallel-gateways': ['a1', 'b1', 'a2', 'b2'],
}
MIB64 = 64 << 20


@pytest.fixture(params=sorted(FAR), scope='module')
def cluster(request, shared_lab):
    """(lab, four far hosts)"""
    return shared_lab(request.param), FAR[request.param]


def test_hello_says_where_the_ranks_are(cluster, programs):
    lab, hosts = cluster
    lines = lab.mpi(hosts, programs('hello')).stdout.splitlines()
    assert lines == [f'hello from rank {i} of {len(hosts)} on {host}' for i, host in enumerate(hosts)]


def test_ring(cluster, programs):
    lab, hosts = cluster
    assert '0 words wrong: ok' in lab.mpi(hosts, programs('ring'), 1, n=4).stdout


def test_pingpong(cluster, programs):
    lab, hosts = cluster
    assert 'pingpong: ok' in lab.mpi(hosts[:2], programs('pingpong')).stdout


def test_heat_equation_equals_serial(cluster, programs):
    lab, hosts = cluster
    output = lab.mpi(hosts, programs('heat2d'), 256, 200, n=4).stdout
    assert 'difference to serial 0.0e+00: ok' in output


def test_task_farm(cluster, programs):
    lab, hosts = cluster
    assert '17984 primes below 200000: ok' in lab.mpi(hosts, programs('farm'), n=4).stdout


def test_64_mib_arrive_intact(cluster, programs):
    lab, hosts = cluster
    output = lab.mpi(hosts[:2], programs('bigmsg'), MIB64).stdout
    assert f'{MIB64} bytes from rank 0 to rank 1' in output and ': ok' in output


def test_several_ranks_a_node(cluster, programs):
    """Local and remote partners in one job."""
    lab, hosts = cluster
    assert 'ok' in lab.mpi(hosts[:2], programs('heat2d'), 200, 50, n=6).stdout


def test_two_jobs_at_once(cluster, programs):
    lab, hosts = cluster
    jobs = [lab.start_mpi(order, programs('ring'), 1) for order in (hosts, hosts[::-1])]
    for job in jobs:
        code, output = harness_lab.finish(job, 60)
        assert code == 0 and '0 words wrong: ok' in output, output


def test_nothing_is_left_of_all_that(cluster):
    lab, _ = cluster
    lab.assert_clean()
