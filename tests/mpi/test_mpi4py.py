# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py, from its source distribution, unmodified, built against our mpi.h: its own benchmarks on one node, over three networks with
two gateways in a row, and the same build on MPICH."""
import re
import socket

import pytest

from harness import inputs

FAR = ['a1', 'c1', 'a2', 'c2']

pytestmark = pytest.mark.real_input


@pytest.fixture(scope='module')
def python(installation):
    return inputs.mpi4py(installation)


@pytest.fixture(scope='module')
def mpich():
    return inputs.Mpich()


def check_helloworld(output, hosts):
    # The ranks print one after the other, but their lines come from different nodes by different ways.
    lines = sorted(output.strip().splitlines())
    assert len(lines) == len(hosts), output
    for rank, (line, host) in enumerate(zip(lines, hosts)):
        assert re.match(rf'Hello, World! I am process +{rank} of {len(hosts)} on {host}\.', line), output


def check_ringtest(output):
    assert re.search(r'time for \d+ loops = [0-9.e+-]+ seconds \(4 processes, \d+ bytes\)', output), output


def check_pingpong(output):
    rows = [line.split() for line in output.splitlines() if re.match(r'\s*\d', line)]
    assert [int(row[0]) for row in rows] == [2**i for i in range(21)] and all(float(row[3]) > 0 for row in rows), output


# Fewer repetitions than by default: what counts here is what arrives, and a slow machine has all of a cluster on two cores.
FEW = ['-n', '1048576', '-s', '5', '-l', '100', '--loop-large', '20', '--loop-huge', '5']
BENCHES = {'helloworld': ['helloworld'], 'ringtest': ['ringtest', '-l', '20', '-n', '1000'], 'pingpong': ['pingpong', *FEW],
           'pingpong-pickled': ['pingpong', '-p', *FEW]}


def words(python, bench):
    return [python, '-m', 'mpi4py.bench', *BENCHES[bench]]


def check(bench, output, hosts):
    if bench == 'helloworld':
        check_helloworld(output, hosts)
    elif bench == 'ringtest':
        check_ringtest(output)
    else:
        check_pingpong(output)


@pytest.mark.parametrize('bench', sorted(BENCHES))
def test_over_three_networks(shared_lab, python, bench):
    lab = shared_lab('three-networks')
    check(bench, lab.mpi(FAR, *words(python, bench), timeout_s=120).stdout, FAR)
    lab.assert_clean()


@pytest.mark.parametrize('bench', sorted(BENCHES))
def test_on_one_node(shared_lab, python, bench):
    lab = shared_lab('three-networks')
    check(bench, lab.mpi(['m1'], *words(python, bench), n=4).stdout, ['m1'] * 4)


@pytest.mark.parametrize('bench', sorted(BENCHES))
def test_the_same_build_on_mpich(installation, mpich, python, bench):
    output = mpich.run(4, *words(python, bench)).stdout
    check(bench, output, [socket.gethostname()] * 4)


def test_it_is_our_library(shared_lab, python, mpich):
    """The comparison above means something only if each run used the library it says."""
    program = [python, '-c', 'from mpi4py import MPI; MPI.COMM_WORLD.rank == 0 and print(MPI.Get_library_version())']
    ours = shared_lab('three-networks').mpi(['m1'], *program, n=2).stdout
    theirs = mpich.run(2, *program).stdout
    assert 'Motet' in ours and 'MPICH' not in ours, ours
    assert 'MPICH' in theirs and 'Motet' not in theirs, theirs
