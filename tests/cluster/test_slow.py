# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are slow because their network is, beside programs that hang on the same network: motetctl waits tells one from the
other."""
import os
import time

import pytest

from harness import lab as harness_lab
from harness import stage

LAB = '[network slow]\nnodes = n1 n2\nrate = 2mbit\n'
# One of each kind where time is short.
ALL = os.environ.get('MOTET_SLOW') == 'all'
# Each program begins with all ranks; rank 0 is on n1, rank 1 on n2.
PROGRAMS = {
    'send': 'if (r == 0) MPI_Send(b, N, MPI_BYTE, 1, 7, W); else MPI_Recv(b, N, MPI_BYTE, 0, 7, W, S);',
    'exchange': 'MPI_Sendrecv(b, N, MPI_BYTE, 1 - r, 7, c, N, MPI_BYTE, 1 - r, 7, W, S);',
    'eager': 'for (int i = 0; i < N / 8192; i++) if (r == 0) MPI_Send(b, 8192, MPI_BYTE, 1, 7, W); '
             'else MPI_Recv(b, 8192, MPI_BYTE, 0, 7, W, S); '
             'if (r == 1) MPI_Send(b, 1, MPI_BYTE, 0, 8, W); else MPI_Recv(b, 1, MPI_BYTE, 1, 8, W, S);',
    'bcast': 'MPI_Bcast(b, N, MPI_BYTE, 0, W);',
    'hangs_after': 'if (r == 0) MPI_Send(b, 65536, MPI_BYTE, 1, 7, W); else MPI_Recv(b, 65536, MPI_BYTE, 0, 7, W, S); '
                   'MPI_Recv(b, 1, MPI_BYTE, 1 - r, 9, W, S);',
}
TEXT = '''#include <mpi.h>
#include <stdlib.h>
#define N (4 << 20)
#define W MPI_COMM_WORLD
#define S MPI_STATUS_IGNORE
int main(int argc, char **argv)
{
    int r;
    char *b = calloc(N, 1), *c = calloc(N, 1);
    (void)argc, (void)argv, (void)c;
    MPI_Init(0, 0);
    MPI_Comm_rank(W, &r);
    %s
    return MPI_Finalize();
}
'''


@pytest.fixture(scope='module')
def lab(installation, namespaces, tmp_path_factory):
    folder = tmp_path_factory.mktemp('slow')
    (folder / 'slow.lab').write_text(LAB)
    made = harness_lab.Lab(installation, str(folder / 'slow.lab'), folder / 'logs')
    made.wait_routes()
    yield made
    made.down()


@pytest.fixture(scope='module')
def build(installation, tmp_path_factory):
    folder = tmp_path_factory.mktemp('programs')

    def one(name):
        (folder / f'{name}.c').write_text(TEXT % PROGRAMS[name])
        stage.run([installation.mpicc, '-O1', '-o', folder / name, folder / f'{name}.c'])
        return folder / name
    return one


def findings(lab):
    return [finding for job in lab.motetctl('n1', 'waits') for finding in job['findings']]


def watch(lab, program, until, within_s=15):
    """Looks at a job again and again until `until` says that it has seen enough. Returns all findings."""
    job = lab.start_mpi(['n1', 'n2'], program)
    seen = []
    try:
        deadline = time.monotonic() + within_s
        while not until(seen):
            assert time.monotonic() < deadline and job.poll() is None, seen
            seen += findings(lab)
    finally:
        harness_lab.stop(job)
    lab.assert_clean()
    return seen


@pytest.mark.parametrize('name', ['hangs_after'])
def test_hung_is_not_slow(lab, build, name):
    seen = watch(lab, build(name), lambda seen: any(f['kind'] == 'deadlock' for f in seen))
    assert seen[-1]['kind'] == 'deadlock' and not any(f['kind'] == 'network' for f in seen[-1:]), seen


@pytest.mark.parametrize('name', ['send', 'exchange', 'eager', 'bcast'] if ALL else ['send'])
def test_slow_is_not_hung(lab, build, name):
    seen = watch(lab, build(name), lambda seen: sum(f['kind'] == 'network' for f in seen) >= 2)
    assert not [f for f in seen if f['kind'] in ('deadlock', 'circle', 'stuck')], seen
    assert all('network slow' in f['text'] for f in seen if f['kind'] == 'network'), seen
