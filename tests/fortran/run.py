#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fortran programs in the build folder: run.py COMPILER FOLDER-OF-THE-MODULES FOLDER-OF-LIBMPI LOCAL_RUN INCLUDE-FOLDER...

Each program here, the NAS Parallel Benchmarks in npb/ among them, is compiled, run on some ranks of a node, and must end with "no errors" and
nothing else. Each program in
wrong/ must be refused by the compiler, since the interfaces are explicit. Every function of the C library is looked for in the modules and
in the library of Fortran, with its twin of the profiling interface and its large-count form."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
COMPILE_S, RUN_S = 240, 60
RANDOM = ['npb/random_numbers.f90', 'npb/benchmark.f90']
FLOW = ['npb/benchmark.f90', 'npb/flow.f90', 'npb/blocks.f90']
# name of a source: numbers of ranks, files that belong to it (C, or the modules that it uses, in that order)
PROGRAMS = {
    'modern.f90': ([3], []), 'header.f': ([1, 3], []), 'module_mpi.f90': ([1, 3], []), 'callbacks.f90': ([1, 3], []),
    'windows.f90': ([1, 3], []), 'sections.f90': ([1], []), 'conversions.f90': ([1, 3], []),
    'in_place.f': ([1, 3], []), 'interop.f90': ([1, 3], ['interop_c.c']),
    'npb/ep.f90': ([4], RANDOM), 'npb/ft.f90': ([4], RANDOM), 'npb/is.f90': ([1, 2, 4, 8], RANDOM), 'npb/cg.f90': ([1, 2, 4, 8], RANDOM),
    'npb/mg.f90': ([1, 2, 4, 8], RANDOM), 'npb/lu.f90': ([1, 2, 4, 8], FLOW), 'npb/bt.f90': ([1, 4, 8, 9], FLOW),
    'npb/sp.f90': ([1, 4, 8, 9], FLOW)}
# What the standard gives no Fortran procedure: conversions of C, the tool interface, what MPI-3 took away.
NOT_IN_FORTRAN = re.compile(r'MPI_(T_.*|.*_(toint|fromint|c2f|f2c)|Address|Errhandler_(create|get|set)'
                            r'|Type_(extent|hindexed|hvector|lb|struct|ub))$')
# In the module mpi alone.
DEPRECATED = {'MPI_Attr_delete', 'MPI_Attr_get', 'MPI_Attr_put', 'MPI_Get_elements_x', 'MPI_Info_get', 'MPI_Info_get_valuelen',
              'MPI_Keyval_create', 'MPI_Keyval_free', 'MPI_Status_set_elements_x', 'MPI_Type_get_extent_x',
              'MPI_Type_get_true_extent_x', 'MPI_Type_size_x'}
# Their large-count forms have the same arguments, since addresses and counts are of one kind in Fortran (MPI-5.0 section 19.2).
ONE_FORM = {'MPI_File_get_type_extent', 'MPI_Precv_init', 'MPI_Psend_init', 'MPI_Type_create_resized', 'MPI_Type_get_extent',
            'MPI_Type_get_true_extent'}


def compile_program(compile_words, source, target):
    """compile_words: the compiler with its options, and those for linking. Modules land beside the target."""
    before, after = compile_words
    return subprocess.run([*before, source, '-o', target, *after], capture_output=True, text=True, timeout=COMPILE_S, check=False,
                          cwd=os.path.dirname(target))


def compile_c(cc, include, source, target):
    words = [*cc, '-c', os.path.join(HERE, source), '-o', target, *[f'-I{folder}' for folder in include]]
    return subprocess.run(words, capture_output=True, text=True, timeout=COMPILE_S, check=False)


def symbols(library):
    done = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True, timeout=RUN_S, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def missing_symbols(libmpi, libmpifort):
    """(what the C library has and Fortran's has not, all names of functions with Fortran procedures). The names come from the C
    library, not from the list that both were made of."""
    fortran = symbols(libmpifort)
    functions = {name for name in symbols(libmpi) if name.startswith('MPI_') and not NOT_IN_FORTRAN.match(name)}
    missing = []
    for name in sorted(functions):
        low = name.lower()
        small = name[:-2] if name.endswith('_c') and name[:-2] in functions else None
        if small:
            forms = {f'{low}_f08_', f'{low}_f08ts_'}
            if not forms & fortran and small not in ONE_FORM:
                missing.append(f'{low}_f08_')
            continue
        wanted = [f'{prefix}{low}_' for prefix in ('', 'p')]
        missing += [symbol for symbol in wanted if symbol not in fortran]
        if name not in DEPRECATED:
            missing += [f'{prefix}{low}_f08[ts]_' for prefix in ('', 'p') if not {f'{prefix}{low}_f08_', f'{prefix}{low}_f08ts_'} & fortran]
    return missing, functions


def names_program(module, functions, compile_words, work):
    """A program that takes all names from a module."""
    names = sorted(name for name in functions if not name.endswith('_c') and (module == 'mpi' or name not in DEPRECATED))
    lines = [f'  use {module}, only: {prefix}{name}' for name in names for prefix in ('', 'P')]
    lines += [f'  use {module}, only: {name}' for name in ('MPI_F_sync_reg', 'PMPI_F_sync_reg', 'MPI_Sizeof', 'MPI_Status_f2f08', 'MPI_Status_f082f')]
    source = os.path.join(work, f'names_{module}.f90')
    with open(source, 'w', encoding='ascii') as file:
        file.write('\n'.join(['program names', *lines, '  implicit none', 'end program', '']))
    return compile_program(compile_words, source, os.path.join(work, 'names.x'))


def build(name, compile_words, cc, include, work):
    """(program or None, what the compiler said)"""
    target, said = os.path.join(work, os.path.basename(name) + '.x'), ''
    before, after = compile_words
    modules, objects = [], []
    for part in PROGRAMS[name][1]:
        if not part.endswith('.c'):
            modules.append(os.path.join(HERE, part))
            continue
        objects.append(os.path.join(work, part + '.o'))
        done = compile_c(cc, include, part, objects[-1])
        if done.returncode != 0:
            return None, done.stderr
    done = compile_program(([*before, *modules], [*objects, *after]), os.path.join(HERE, name), target)
    said = done.stderr
    return (target if done.returncode == 0 else None), said


def main():
    compiler, modules, libmpi, local_run, *include = sys.argv[1:]
    n_bad = n_good = 0

    def judge(good, what, output):
        nonlocal n_bad, n_good
        n_good += good
        n_bad += not good
        if not good:
            print(f'{what}:\n{output}')

    words = ([*compiler.split(), '-g', '-w', f'-I{modules}', *[f'-I{folder}' for folder in include]],
             [f'-L{modules}', f'-L{libmpi}', '-lmpifort_abi', '-lmpi_abi', f'-Wl,-rpath,{modules}', f'-Wl,-rpath,{libmpi}'])
    environment = dict(os.environ, LD_LIBRARY_PATH=f'{modules}:{libmpi}')
    with tempfile.TemporaryDirectory() as work:
        missing, functions = missing_symbols(os.path.join(libmpi, 'libmpi_abi.so.1'), os.path.join(modules, 'libmpifort_abi.so.1'))
        judge(not missing and len(functions) > 400, 'not in the library', ' '.join(missing))
        for module in ('mpi', 'mpi_f08'):
            done = names_program(module, functions, words, work)
            judge(done.returncode == 0, f'not in the module {module}', done.stderr)
        for name, (numbers, _) in PROGRAMS.items():
            target, said = build(name, words, ['cc'], [*include, os.path.join(HERE, '..', '..', 'client', 'fortran')], work)
            judge(target is not None, f'{name} does not compile', said)
            for ranks in numbers if target else ():
                ran = subprocess.run([local_run, str(ranks), target], capture_output=True, text=True, timeout=RUN_S, check=False, env=environment)
                judge(ran.returncode == 0 and ran.stdout.split() == ['no', 'errors'], f'{name} on {ranks} ranks (exit code {ran.returncode})',
                      ran.stdout + ran.stderr)
        for name in sorted(os.listdir(os.path.join(HERE, 'wrong'))):
            done = compile_program(words, os.path.join(HERE, 'wrong', name), os.path.join(work, 'wrong.x'))
            judge(done.returncode != 0 and 'error:' in done.stderr.lower(), f'{name} compiles', done.stderr)
    print(f'{n_good} good, {n_bad} bad')
    return 1 if n_bad or not n_good else 0


if __name__ == '__main__':
    sys.exit(main())
