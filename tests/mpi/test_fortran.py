# SPDX-License-Identifier: BSD-3-Clause
"""Fortran programs compiled by the installed mpifort: on one node, over three networks with two gateways, and the same binaries on MPICH."""
import os
import subprocess

import pytest

from harness import places, stage

SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'fortran')
PROGRAMS = ['modern.f90', 'header.f', 'module_mpi.f90']
RUN_S = 60


@pytest.fixture(scope='module')
def programs(tmp_path_factory):
    """name of a source -> its program."""
    installation = stage.find()
    compiler = os.path.join(installation.prefix, 'bin', 'mpifort')
    if not os.path.exists(compiler):
        pytest.skip('the Fortran interface is not built')
    folder = tmp_path_factory.mktemp('fortran')
    built = {}
    for name in PROGRAMS:
        built[name] = str(folder / (name + '.x'))
        subprocess.run([compiler, '-w', '-o', built[name], os.path.join(SOURCES, name)], check=True, timeout=120)
    return built


@pytest.fixture(scope='module', params=['node', 'three', pytest.param('mpich', marks=pytest.mark.real_input)])
def place(request, tmp_path_factory):
    made = places.make(request.param, stage.find(), str(tmp_path_factory.mktemp('logs')))
    yield made
    made.close()


@pytest.mark.parametrize('name', PROGRAMS)
def test_program(programs, place, name):
    _, code, output = places.run(place, [*place.words(4), programs[name]], RUN_S, cwd='/', env=place.environment)
    assert code == 0, output
    assert output.split() == ['no', 'errors'], output


@pytest.mark.usefixtures('programs')
def test_another_compiler_is_refused():
    compiler = os.path.join(stage.find().prefix, 'bin', 'mpifort')
    done = subprocess.run([compiler, '-fc=no-such-fortran', '-c', 'x.f90'], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "no compiler 'no-such-fortran'" in done.stderr
