# SPDX-License-Identifier: BSD-3-Clause
"""The example programs, the same binaries on our library and on MPICH's: the same output."""
import re
import socket

import pytest

from harness import inputs, stage

PROGRAMS = [('hello',), ('ring', 1), ('heat2d', 120, 60), ('heat2d', 97, 31), ('farm', 50000, 60), ('bigmsg', 8 << 20),
            ('pingpong',), ('hang', 1)]

pytestmark = pytest.mark.real_input


@pytest.fixture(scope='module')
def mpich():
    return inputs.Mpich()


def comparable(text, host):
    """Without what differs from run to run and from place to place: speeds and the host's name."""
    text = re.sub(r', [0-9.]+ MB/s$', '', text, flags=re.MULTILINE)
    text = re.sub(r'^( *\d+) +[0-9.]+ +[0-9.]+$', r'\1', text, flags=re.MULTILINE)
    return re.sub(rf'\b{re.escape(host)}\b', 'HOST', text)


@pytest.mark.parametrize('n_ranks', [2, 3, 4, 6])
@pytest.mark.parametrize('program', PROGRAMS, ids=lambda words: '-'.join(map(str, words)))
def test_same_output(shared_lab, programs, mpich, program, n_ranks):
    words = [programs(program[0]), *program[1:]]
    ours = shared_lab('one-network').mpi(['n1'], *words, n=n_ranks).stdout
    theirs = mpich.run(n_ranks, *words, timeout_s=90).stdout
    assert comparable(ours, 'n1') == comparable(theirs, socket.gethostname())


def test_the_binary_is_bound_to_neither(programs):
    """It asks for the standard's library by its name and finds ours by a path that LD_LIBRARY_PATH overrides."""
    listing = stage.run(['objdump', '-p', programs('hello')]).stdout
    assert re.search(r'NEEDED +libmpi_abi\.so\.1\b', listing) and 'RUNPATH' in listing and ' RPATH' not in listing
