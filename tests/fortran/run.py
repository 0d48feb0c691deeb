#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fortran programs in the build folder: run.py COMPILER FOLDER-OF-THE-MODULES FOLDER-OF-LIBMPI LOCAL_RUN [--twice]

Each program here is compiled, run with one and with three ranks of a node, and must end with "no errors" and nothing else. Each program in
wrong/ must be refused by the compiler, since the interfaces are explicit."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
COMPILE_S, RUN_S = 120, 60
PROGRAMS = {'modern.f90': [], 'header.f': [], 'module_mpi.f90': []}


def compile_program(compiler, modules, libmpi, source, target):
    command = [*compiler.split(), '-g', '-w', f'-I{modules}', source, '-o', target, f'-L{modules}', f'-L{libmpi}', '-lmpifort_abi', '-lmpi_abi',
               f'-Wl,-rpath,{modules}', f'-Wl,-rpath,{libmpi}']
    return subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S, check=False)


def main():
    compiler, modules, libmpi, local_run = sys.argv[1:5]
    n_bad = n_good = 0

    def judge(good, what, output):
        nonlocal n_bad, n_good
        n_good += good
        n_bad += not good
        if not good:
            print(f'{what}:\n{output}')

    environment = dict(os.environ, LD_LIBRARY_PATH=f'{modules}:{libmpi}')
    with tempfile.TemporaryDirectory() as work:
        for name in PROGRAMS:
            target = os.path.join(work, name + '.x')
            done = compile_program(compiler, modules, libmpi, os.path.join(HERE, name), target)
            judge(done.returncode == 0, f'{name} does not compile', done.stderr)
            for ranks in ('1', '3') if done.returncode == 0 else ():
                if name == 'modern.f90' and ranks == '1':
                    continue  # two ranks talk
                ran = subprocess.run([local_run, ranks, target], capture_output=True, text=True, timeout=RUN_S, check=False, env=environment)
                judge(ran.returncode == 0 and ran.stdout.split() == ['no', 'errors'], f'{name} on {ranks} ranks (exit code {ran.returncode})',
                      ran.stdout + ran.stderr)
        for name in sorted(os.listdir(os.path.join(HERE, 'wrong'))):
            done = compile_program(compiler, modules, libmpi, os.path.join(HERE, 'wrong', name), os.path.join(work, 'wrong.x'))
            judge(done.returncode != 0 and 'Error' in done.stderr, f'{name} compiles', done.stderr)
    print(f'{n_good} good, {n_bad} bad')
    return 1 if n_bad or not n_good else 0


if __name__ == '__main__':
    sys.exit(main())
