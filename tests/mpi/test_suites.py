# SPDX-License-Identifier: BSD-3-Clause
"""Other people's test suites, in the extent that every change can afford; tests/suites runs all of them."""
import os
import sys

import pytest

from harness import inputs, stage

SUITES = os.path.join(stage.ROOT, 'tests', 'suites')
# Some minutes where nothing else runs; machines that others use take several times that.
DEADLINE_S = 900
SLICE_CHAPTERS = ['attr', 'comm', 'datatype', 'errhan', 'group', 'info', 'topo', 'errors/pt2pt']
SLICE_PT2PT = ['bsend*', '*probe*', 'sendrecv*', 'waitany*', 'rqstatus', 'mprobe', 'isend*', 'greq1', 'anyall']

pytestmark = pytest.mark.real_input


def test_mpich_slice(installation):
    """Some chapters of MPICH's suite, and from others what has found most."""
    try:
        inputs.mpich_suite()
    except AssertionError as error:
        pytest.skip(f'the source package of MPICH cannot be had: {error}')
    env = dict(os.environ, MOTET_STAGE=installation.prefix)
    words = [sys.executable, os.path.join(SUITES, 'run_mpich.py')]
    slices = [['--chapters', *SLICE_CHAPTERS, '--no-pools'], ['--chapters', 'pt2pt', '--no-pools', '--only', *SLICE_PT2PT]]
    for options in slices:
        done = stage.run([*words, *options], timeout_s=DEADLINE_S, check=False, env=env)
        print(done.stdout)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize('place', ['4'])
def test_mpi4py(installation, namespaces, place):
    done = stage.run([sys.executable, os.path.join(SUITES, 'run_mpi4py.py'), '--recorded', '--deadline', DEADLINE_S - 300, '--places',
                      place], timeout_s=DEADLINE_S + 600, check=False, env=dict(os.environ, MOTET_STAGE=installation.prefix))
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
