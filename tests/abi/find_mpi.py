# SPDX-License-Identifier: BSD-3-Clause
"""Programs find an installed Motet: the wrappers' answers, CMake's FindMPI, meson's dependency('mpi') and pkg-config, with
nothing but bin/ on PATH and PKG_CONFIG_PATH set: find_mpi.py BUILD-FOLDER MESON PREFIX BINDIR LIBDIR.

The build is installed to a folder it was not configured for, which shows as well that the wrappers may be moved."""

import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = '''#include <mpi.h>
#include <stdio.h>

int main(void)
{
    int version, subversion;

    MPI_Get_version(&version, &subversion);
    printf("MPI %d.%d %s\\n", version, subversion, NAME);
    return 0;
}
'''
CMAKE = '''cmake_minimum_required(VERSION 3.13)
project(t C CXX)
find_package(MPI REQUIRED)
foreach(language C CXX)
  if(NOT MPI_${language}_VERSION STREQUAL "5.0")
    message(FATAL_ERROR "version ${MPI_${language}_VERSION} for ${language}")
  endif()
endforeach()
add_executable(in_c program.c)
target_link_libraries(in_c MPI::MPI_C)
add_executable(in_cxx program.cc)
target_link_libraries(in_cxx MPI::MPI_CXX)
'''
MESON = '''project('t', 'c', 'cpp')
executable('in_c', 'program.c', dependencies : dependency('mpi', language : 'c'))
executable('in_cxx', 'program.cc', dependencies : dependency('mpi', language : 'cpp'))
'''


def run(*command, cwd=None, env=None):
    result = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=200, check=False)
    if result.returncode:
        sys.exit(f'{" ".join(command)} (exit {result.returncode}):\n{result.stdout}')
    return result.stdout


def expect(condition, text):
    if not condition:
        sys.exit(text)


def check_program(path, env, library):
    output = run(path, env=env)
    expect(output == 'MPI 5.0 a "name"\n' or output == 'MPI 5.0 name\n', f'{path} says {output}')
    expect(f'{library}/libmpi_abi.so.1' in run('ldd', path, env=env), f'{path} is not linked with {library}')


def check_wrappers(work, env, include, library):
    for wrapper, source in (('mpicc', 'program.c'), ('mpicc_abi', 'program.c'), ('mpicxx', 'program.cc'),
                            ('mpicxx_abi', 'program.cc')):
        # Arguments with blanks and quotes must come through unharmed.
        run(wrapper, '-DNAME="a \\"name\\""', source, '-o', wrapper, cwd=work, env=env)
        check_program(os.path.join(work, wrapper), env, library)
        run(wrapper, '-DNAME="name"', '-c', source, '-o', 'part.o', cwd=work, env=env)
        run(wrapper, 'part.o', '-o', 'parts', cwd=work, env=env)
        check_program(os.path.join(work, 'parts'), env, library)

        def ask(question, name=wrapper):
            return run(name, question, cwd=work, env=env).strip()

        expect(ask('-showme:compile') == f'-I{include}', 'showme:compile')
        link = ask('--showme:link')
        expect(f'-L{library}' in link and '-lmpi_abi' in link and f'-rpath,{library}' in link, f'showme:link: {link}')
        expect(ask('-showme:incdirs') == include and ask('-showme:libdirs') == library, 'showme:incdirs, libdirs')
        expect(ask('-showme:libs') == 'mpi_abi', 'showme:libs')
        expect(link in ask('-show') and link in ask('-showme') and link in ask('-link_info'), 'show')
        expect(f'-I{include}' in ask('-compile_info') and '-lmpi_abi' not in ask('-compile_info'), 'compile_info')
        expect('Motet' in ask('-v'), '-v')
        variable = 'CXX' if 'cxx' in wrapper else 'CC'
        for name in ('MOTET', 'MPICH', 'OMPI'):
            changed = dict(env, **{f'{name}_{variable}': 'another-compiler'})
            expect(run(wrapper, '-show', env=changed).startswith('another-compiler '), f'{name}_{variable}')


def main():
    build, meson, prefix, bindir, libdir = sys.argv[1:6]
    with tempfile.TemporaryDirectory() as top:
        top = os.path.realpath(top)
        run(meson, 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', top)
        root = os.path.join(top, prefix.lstrip('/'))
        library, include = os.path.join(root, libdir), os.path.join(root, 'include')
        env = {k: v for k, v in os.environ.items()
               if k not in ('DESTDIR', 'LD_LIBRARY_PATH', 'MPICH_CC', 'MPICH_CXX', 'OMPI_CC', 'OMPI_CXX', 'MOTET_CC', 'MOTET_CXX')}
        env['PATH'] = os.path.join(root, bindir) + ':' + env['PATH']
        env['PKG_CONFIG_PATH'] = os.path.join(library, 'pkgconfig')
        # The package files name the prefix of the configuration; here they lie elsewhere.
        for file in os.listdir(env['PKG_CONFIG_PATH']):
            path = os.path.join(env['PKG_CONFIG_PATH'], file)
            with open(path, encoding='utf-8') as package:
                text = package.read()
            with open(path, 'w', encoding='utf-8') as package:
                package.write(text.replace(f'prefix={prefix}', f'prefix={root}'))
        work = os.path.join(top, '.programs')
        os.mkdir(work)
        for name in ('program.c', 'program.cc'):
            with open(os.path.join(work, name), 'w', encoding='ascii') as file:
                file.write(PROGRAM)
        check_wrappers(work, env, include, library)

        for package in ('motet', 'mpi-c', 'mpi-cxx'):
            flags = run('pkg-config', '--cflags', '--libs', package, env=env).split()
            expect(f'-I{include}' in flags and '-lmpi_abi' in flags, f'pkg-config {package}: {flags}')
            run('cc', '-DNAME="name"', 'program.c', '-o', 'by_pkg_config', *flags, cwd=work, env=env)
            check_program(os.path.join(work, 'by_pkg_config'), env, library)

        done = ['wrappers', 'pkg-config']
        for name in ('program.c', 'program.cc'):
            with open(os.path.join(work, name), 'w', encoding='ascii') as file:
                file.write('#define NAME "name"\n' + PROGRAM)
        if shutil.which('cmake'):
            with open(os.path.join(work, 'CMakeLists.txt'), 'w', encoding='ascii') as file:
                file.write(CMAKE)
            run('cmake', '-S', work, '-B', os.path.join(work, 'by_cmake'), env=env)
            run('cmake', '--build', os.path.join(work, 'by_cmake'), env=env)
            for name in ('in_c', 'in_cxx'):
                check_program(os.path.join(work, 'by_cmake', name), env, library)
            done.append('cmake')
        with open(os.path.join(work, 'meson.build'), 'w', encoding='ascii') as file:
            file.write(MESON)
        run(meson, 'setup', os.path.join(work, 'by_meson'), work, env=env)
        run(meson, 'compile', '-C', os.path.join(work, 'by_meson'), env=env)
        for name in ('in_c', 'in_cxx'):
            check_program(os.path.join(work, 'by_meson', name), env, library)
        done.append('meson')
        print('found by', ', '.join(done))


main()
