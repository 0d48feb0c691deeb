# SPDX-License-Identifier: BSD-3-Clause
"""Fortran programs compiled by the installed mpifort: on one node, over three networks with two gateways, and the same binaries on MPICH;
what other build systems find; other compilers."""
import os
import shutil
import subprocess
import sys

import pytest

from harness import places, stage

SOURCES = os.path.join(stage.ROOT, 'tests', 'fortran')
sys.path.insert(0, SOURCES)
import run as fortran_run  # noqa: E402  pylint: disable=wrong-import-position

COMPILE_S, RUN_S = 240, 60
# Distributions name them after their version.
OTHER_COMPILERS = ['flang', 'flang-new', *[f'flang{new}-{version}' for version in range(17, 25) for new in ('', '-new')]]
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(program C Fortran)
find_package(MPI REQUIRED COMPONENTS C Fortran)
foreach(form F77_HEADER F90_MODULE F08_MODULE)
  if(NOT MPI_Fortran_HAVE_${form})
    message(FATAL_ERROR "no ${form}")
  endif()
endforeach()
add_executable(program program.f90)
target_link_libraries(program MPI::MPI_Fortran)
"""
MESON = "project('program', 'fortran')\nexecutable('program', 'program.f90', dependencies : dependency('mpi', language : 'fortran'))\n"


@pytest.fixture(scope='module')
def mpifort():
    path = os.path.join(stage.find().prefix, 'bin', 'mpifort')
    if not os.path.exists(path):
        pytest.skip('the Fortran interface is not built')
    return path


def compiled(mpifort, name, folder, *options):
    include = subprocess.run([mpifort, '-showme:incdirs', *options], capture_output=True, text=True, timeout=COMPILE_S, check=True)
    program, said = fortran_run.build(name, ([mpifort, *options, '-w'], []), ['cc'], include.stdout.split(), str(folder))
    assert program, said
    return program


@pytest.fixture(scope='module')
def programs(mpifort, tmp_path_factory):
    """name of a source -> its program."""
    folder = tmp_path_factory.mktemp('fortran')
    return {name: compiled(mpifort, name, folder) for name in fortran_run.PROGRAMS}


@pytest.fixture(scope='module', params=['node', 'three', pytest.param('mpich', marks=pytest.mark.real_input)])
def place(request, tmp_path_factory):
    made = places.make(request.param, stage.find(), str(tmp_path_factory.mktemp('logs')))
    yield made
    made.close()


def assert_no_errors(place, program, n_ranks=4):
    _, code, output = places.run(place, [*place.words(n_ranks), program], RUN_S, cwd='/', env=place.environment)
    assert code == 0, output
    assert output.split() == ['no', 'errors'], output


@pytest.mark.parametrize('name', fortran_run.PROGRAMS)
def test_program(programs, place, name):
    # MPICH's ranks wait by polling alone: the benchmarks' many short messages take seconds where ranks share a core.
    assert_no_errors(place, programs[name], 2 if name.startswith('npb/') and isinstance(place, places.Mpich) else 4)


def test_wrapper_says_what_it_does(mpifort, tmp_path):
    def ask(*words):
        return subprocess.run([mpifort, *words], capture_output=True, text=True, timeout=30, check=True).stdout.split()

    compiler, flags, link = ask('-showme:command'), ask('-showme:compile'), ask('-showme:link')
    assert ask('-show', 'x.f90') == [*compiler, *flags, 'x.f90', *link]
    assert ask('-showme', '-c', 'x.f90') == [*compiler, *flags, '-c', 'x.f90']
    assert ask('-showme:libs') == ['mpifort_abi', 'mpi_abi']
    source = os.path.join(SOURCES, 'module_mpi.f90')
    subprocess.run([*compiler, *flags, source, '-o', str(tmp_path / 'x'), *link], timeout=COMPILE_S, check=True)


def test_build_systems_find_it(mpifort, tmp_path):
    prefix = stage.find().prefix
    packages = [folder for folder, _, files in os.walk(os.path.join(prefix, 'lib')) if 'mpi-fort.pc' in files]
    environment = dict(os.environ, PATH=f'{os.path.dirname(mpifort)}:{os.environ["PATH"]}', PKG_CONFIG_PATH=':'.join(packages))
    shutil.copy(os.path.join(SOURCES, 'module_mpi.f90'), tmp_path / 'program.f90')
    (tmp_path / 'CMakeLists.txt').write_text(CMAKE)
    (tmp_path / 'meson.build').write_text(MESON)

    def run(*words):
        return stage.run(words, COMPILE_S, env=environment, cwd=tmp_path).stdout

    flags = run('pkg-config', '--cflags', '--libs', 'mpi-fort').split()
    run('gfortran', 'program.f90', '-o', 'by_pkg_config', *flags)
    run('cmake', '-S', '.', '-B', 'by_cmake')
    run('cmake', '--build', 'by_cmake')
    run('meson', 'setup', 'by_meson')
    run('meson', 'compile', '-C', 'by_meson')
    for program in ('./by_pkg_config', 'by_cmake/program', 'by_meson/program'):
        assert run('mpiexec', '-private', '-n', '2', program).split() == ['no', 'errors']


def test_another_compiler_is_refused(mpifort):
    done = subprocess.run([mpifort, '-fc=no-such-fortran', '-c', 'x.f90'], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "no compiler 'no-such-fortran'" in done.stderr


def test_another_version_is_refused(mpifort, tmp_path):
    """The compiler was replaced by a newer one, which cannot read the modules."""
    (tmp_path / 'gfortran').write_text('#!/bin/sh\ncase $1 in\n-dumpversion) echo 99 ;;\n*) echo "GNU Fortran (Somebody) 99.1.0" ;;\nesac\n')
    (tmp_path / 'gfortran').chmod(0o755)
    done = subprocess.run([mpifort, '-c', 'x.f90'], capture_output=True, text=True, timeout=30,
                          env=dict(os.environ, PATH=f'{tmp_path}:{os.environ["PATH"]}'))
    assert done.returncode != 0
    assert 'no MPI modules for gfortran-99' in done.stderr
    assert 'motet-fortran build --fc=gfortran' in done.stderr


@pytest.mark.parametrize('compiler', [name for name in OTHER_COMPILERS if shutil.which(name)] or
                         [pytest.param('', marks=pytest.mark.skip('no other Fortran compiler is installed'))])
def test_another_compiler(mpifort, compiler, tmp_path):
    """One command builds the modules; then the same programs run (of the benchmarks two, as some of these compilers are slow), and the same
    wrong ones are refused."""
    installation = stage.find()
    motet_fortran = os.path.join(installation.prefix, 'bin', 'motet-fortran')
    stage.run([motet_fortran, 'build', f'--fc={compiler}'], 4 * COMPILE_S)
    here = places.make('node', installation, str(tmp_path))
    for name in fortran_run.PROGRAMS:
        if name.startswith('npb/') and name not in ('npb/mg.f90', 'npb/sp.f90'):
            continue
        assert_no_errors(here, compiled(mpifort, name, tmp_path, f'-fc={compiler}'))
    for name in sorted(os.listdir(os.path.join(SOURCES, 'wrong'))):
        words = ([mpifort, f'-fc={compiler}'], [])
        done = fortran_run.compile_program(words, os.path.join(SOURCES, 'wrong', name), str(tmp_path / 'wrong.x'))
        assert done.returncode != 0 and 'error:' in done.stderr, f'{name} compiles'
