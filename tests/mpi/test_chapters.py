# SPDX-License-Identifier: BSD-3-Clause
"""Our programs for the chapters of the standard: the same binaries on MPICH's library, and on ours over every example topology.

Each program uses mpi.h alone, checks its results itself, and exits with 0. Where MPICH does otherwise, KNOWN tells whose mistake that is; such
a line is refused as soon as MPICH agrees with us."""
import os

import pytest

from harness import inputs, stage

# The testlist: program, chapter, sources, arguments, ranks on MPICH.
TESTS = [
    ('p2p', 'point to point', ['mpi/p2p.c'], [], 2),
    ('stress', 'point to point: random traffic, every mode, wildcards', ['client/stress.c'], [5, 60], 3),
    ('asking', 'point to point: programs that ask instead of waiting', ['mpi/asking.c'], [], 2),
    # Alone it is also asked about MPI_PROC_NULL, of which MPICH's MPI_Psend_init dies: tests/topo.
    ('partitioned', 'point to point: partitioned', ['topo/partitioned.c'], [], 4),
    ('objects', 'datatypes, groups, communicators, attributes, info', ['mpi/objects.c'], [], 3),
    ('soak', 'objects that come and go', ['mpi/soak.c'], [2000, 4], 2),
    ('comms', 'communicators: creation, caching, error handlers, names', ['coll/comms.c', 'coll/data.c'], [], 3),
    ('sessions', 'sessions and process sets, buffers', ['topo/sessions.c'], [], 2),
    ('collectives', 'collectives in all forms', ['coll/collectives.c', 'coll/data.c'], [100], 4),
    ('inter', 'collectives of intercommunicators', ['coll/inter.c', 'coll/data.c'], [], 4),
    ('topologies', 'topologies', ['topo/topologies.c'], [], 4),
    ('neighbors', 'neighbourhood collectives', ['topo/neighbors.c'], [], 4),
    ('threads', 'threads', ['client/threads.c'], [], 2),
    ('coll_threads', 'threads in collectives', ['coll/threads.c'], [], 2),
    ('vcis', 'threads on communicators of their own', ['client/vcis.c'], [3, 100], 2),
    ('environment', 'versions, the ABI, names, memory', ['mpi/environment.c'], [], 2),
    ('errors', 'errors', ['mpi/errors.c'], [], 2),
    ('io', 'files', ['mpi/io.c'], [], 2),
    ('deprecated', 'deprecated and removed functions', ['mpi/deprecated.c'], [], 2),
    ('tools', 'the tool information interface', ['mpi/tools.c'], [], 2),
]

# What MPICH 5.0.2 does otherwise: a piece of the program's output there, and why that is MPICH's mistake.
KNOWN = {
    'comms': ('error_class == MPI_ERR_ROOT',
              'MPI_Bcast with a root that does not exist calls the error handler of the communicator and then returns MPI_SUCCESS; a function '
              'whose error handler returns gives its error (MPI-5.0 section 9.3)'),
    'inter': ('inter bcast',
              'a nonblocking broadcast between two groups of two ranks, from the second rank of one, brings wrong data'),
    'io': ('read up to the end: 1000 elements instead of 500',
           'a read through a view with gaps says that it brought all that was asked for, though the file ends before'),
    'collectives': ('reduce_scatter_block',
                    'MPI_Reduce_scatter_block takes blocks of a type with gaps from places that do not follow from its extent'),
}

# A bound on time: nothing may run beside it.
PARAMETERS = [pytest.param(test, id=test[0], marks=[pytest.mark.alone] if test[0] == 'asking' else []) for test in TESTS]

# The example topologies, and nodes of each with as many gateways between them as it has.
PLACES = {
    'one-network': ['n1', 'n2', 'n3', 'n1'],
    'two-rails': ['n1', 'n2', 'n1', 'n2'],
    'gateway': ['a1', 'b1', 'a2', 'b2'],
    'parallel-gateways': ['a1', 'b1', 'a2', 'b2'],
    'ring': ['n1', 'e1', 'w1', 'g1'],
    'three-networks': ['a1', 'c1', 'm1', 'c2'],
}


@pytest.fixture(scope='module')
def chapter(installation, tmp_path_factory):
    """A function from a test to the words of its command."""
    folder = tmp_path_factory.mktemp('chapters')

    def build(test):
        name, _, sources, arguments, _ = test
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            files = [os.path.join(stage.ROOT, 'tests', source) for source in sources]
            stage.run([installation.mpicc, '-O1', '-I', stage.ROOT, '-o', path, *files, '-lpthread', '-lm'], timeout_s=120)
        return [path, *arguments]

    return build


@pytest.mark.real_input
@pytest.mark.parametrize('test', PARAMETERS)
def test_on_mpich(chapter, test):
    mpich, n_ranks = inputs.Mpich(), test[4]
    command = [mpich.mpiexec, '-n', n_ranks, *chapter(test)]
    trace, why = KNOWN.get(test[0], (None, None))
    done = stage.run(command, 120, check=trace is None, env=mpich.environment)
    if trace:
        assert done.returncode != 0, f'MPICH no longer does otherwise in {test[0]}: {why}'
        assert trace in done.stdout + done.stderr, f'MPICH does otherwise in {test[0]} than known:\n{(done.stdout + done.stderr)[-3000:]}'


@pytest.mark.parametrize('place', PLACES)
@pytest.mark.parametrize('test', PARAMETERS)
def test_over(shared_lab, chapter, place, test):
    hosts = PLACES[place][:max(test[4], 2)]
    shared_lab(place).mpi(hosts, *chapter(test), n=len(hosts), timeout_s=120)
