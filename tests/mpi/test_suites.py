# SPDX-License-Identifier: BSD-3-Clause
"""Other people's test suites, in the extent that every change can afford; tests/suites runs all of them."""
import os
import sys

import pytest
from harness import stage

SUITES = os.path.join(stage.ROOT, 'tests', 'suites')
# Some minutes where nothing else runs; machines that others use take several times that.
DEADLINE_S = 900

pytestmark = pytest.mark.real_input


@pytest.mark.parametrize('place', ['4'])
def test_mpi4py(installation, namespaces, place):
    done = stage.run([sys.executable, os.path.join(SUITES, 'run_mpi4py.py'), '--recorded', '--deadline', DEADLINE_S - 300, '--places',
                      place], timeout_s=DEADLINE_S + 600, check=False, env=dict(os.environ, MOTET_STAGE=installation.prefix))
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
