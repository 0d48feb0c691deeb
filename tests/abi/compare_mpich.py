# SPDX-License-Identifier: BSD-3-Clause
"""Compares our ABI with that of MPICH's wheel: compare_mpich.py FOLDER-OF-MPI.H LIBRARY.

MOTET_TEST_MPICH names the folder that holds include/mpi_abi.h and lib/libmpi_abi.so.1 (a virtual environment with
`pip install mpich`). Without it the test is skipped. Compared: the functions and the types of their parameters and
results, callback types, every constant and handle with value and type, sizes and offsets, and the exported symbols."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'client', 'abi'))
import exports

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
# Of these two MPICH knows one form alone, with a large count under the name without a suffix; the MPI Forum's stub header has `int count`
# there and large-count forms as well.
OURS_ONLY = {'MPI_Psend_init_c', 'MPI_Precv_init_c'}
OTHERWISE = {'MPI_Psend_init', 'MPI_Precv_init', 'PMPI_Psend_init', 'PMPI_Precv_init'}
OUR_TYPES_ONLY = {'MPI_Fint'}
# Extensions of MPICH.
THEIRS_ONLY = re.compile(r'P?MPIX_')

errors = []


def complain(text):
    errors.append(text)


def read(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    return re.sub(r'//[^\n]*', ' ', text)


def split_arguments(text):
    return [a.strip() for a in text.split(',')] if text.strip() not in ('', 'void') else []


def plain_type(declaration):
    """`const int sendcounts[]` -> `const int *`: the type of a parameter, without its name."""
    text = ' '.join(declaration.replace('*', ' * ').split())
    brackets = re.findall(r'\[\d*\]', text)
    text = re.sub(r'\s*\[\d*\]', '', text)
    if text != '...':
        words = text.split()
        if len(words) > 1 and words[-1] not in ('*', 'const') and (len(words) > 2 or words[0] != 'const'):
            words.pop()
        text = ' '.join(words)
    if '*' not in text and not brackets:
        text = text.removeprefix('const ')  # of the parameter itself
    if brackets:
        text += ' *' if len(brackets) == 1 else ' (*)' + ''.join(brackets[1:])
    return text


def functions_of(text):
    """name -> (result, parameter types)"""
    found = {}
    without = re.sub(r'(?m)^\s*#.*$', '', re.sub(r'typedef[^;{]*(\{[^}]*\})?[^;]*;', '', text, flags=re.S))
    for result, name, arguments in re.findall(r'(\w+)\s+(P?MPIX?_\w+)\s*\(([^;{}]*)\)\s*;', without):
        found[name] = (result, tuple(plain_type(a) for a in split_arguments(arguments)))
    return found


def callbacks_of(text):
    found = {}
    for result, name, arguments in re.findall(r'typedef\s+(\w+)\s*\(\s*(MPIX?_\w+)\s*\)\s*\(([^;]*)\)\s*;', text):
        found[name] = (result, tuple(plain_type(a) for a in split_arguments(arguments)))
    return found


def types_of(text):
    """Names that typedefs declare, those of function types excepted."""
    return set(re.findall(r'\b(MPI_\w+)\s*;', ' '.join(re.findall(r'typedef[^;{]*(?:\{[^}]*\}([^;]*;)|;)', text)))) | set(
        re.findall(r'typedef[^;{}()]*\b(MPI_\w+)\s*;', text))


def constants_of(text):
    names = re.findall(r'^\s*#\s*define\s+(MPI_\w+)\s+\S', text, re.M)
    for body in re.findall(r'\benum\b[^;{]*\{([^}]*)\}', text):
        names += re.findall(r'\b(MPI_\w+)\s*=', body)
    return {n for n in names if not THEIRS_ONLY.match(n) and not re.match(r'MPI_ABI_(Aint|Offset|Count|H)$', n)
            and n != 'MPI_H_ABI'}


def compare_names(what, ours, theirs, ours_only=()):
    theirs = {name for name in theirs if not THEIRS_ONLY.match(name)}
    for name in sorted(theirs - set(ours)):
        complain(f'{what} {name} is missing')
    for name in sorted(set(ours) - theirs - set(ours_only)):
        complain(f'{what} {name} is not in the other header')


def compare_signatures(what, ours, theirs):
    for name in sorted(set(ours) & set(theirs)):
        if ours[name] != theirs[name]:
            complain(f'{what} {name}: ours {ours[name]}, theirs {theirs[name]}')


def values(include, header, names, types, scratch):
    """Output of layout.c compiled against a header, with the lists of names and types."""
    with open(os.path.join(scratch, 'names.h'), 'w', encoding='ascii') as file:
        file.write(''.join(f'CONSTANT({name})\n' for name in sorted(names)))
    with open(os.path.join(scratch, 'types.h'), 'w', encoding='ascii') as file:
        file.write(''.join(f'TYPE({name})\n' for name in sorted(types)))
    program = os.path.join(scratch, 'layout')
    subprocess.run([os.environ.get('CC', 'cc'), '-std=c11', '-I', include, '-I', scratch, f'-DMPI_HEADER="{header}"',
                    os.path.join(HERE, 'layout.c'), '-o', program], check=True, timeout=120)
    output = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout
    return dict(line.split(' ', 1) for line in output.splitlines())


def symbols_of(library):
    output = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True,
                            timeout=60).stdout
    return {line.split()[2].split('@')[0]: line.split()[1] for line in output.splitlines() if len(line.split()) == 3}


def main():
    include, library = sys.argv[1:3]
    peer = os.environ.get('MOTET_TEST_MPICH', '')
    their_header = os.path.join(peer, 'include', 'mpi_abi.h')
    their_library = os.path.join(peer, 'lib', 'libmpi_abi.so.1')
    if not peer or not os.path.exists(their_header):
        print('skipped: MOTET_TEST_MPICH names no folder with include/mpi_abi.h (pip install mpich)')
        sys.exit(SKIP)
    ours, theirs = read(os.path.join(include, 'mpi.h')), read(their_header)

    our_functions, their_functions = functions_of(ours), functions_of(theirs)
    extra = OURS_ONLY | {'P' + name for name in OURS_ONLY}
    compare_names('function', our_functions, their_functions, extra)
    compare_signatures('function', {name: f for name, f in our_functions.items() if name not in OTHERWISE}, their_functions)
    our_callbacks, their_callbacks = callbacks_of(ours), callbacks_of(theirs)
    compare_names('callback type', our_callbacks, their_callbacks)
    compare_signatures('callback type', our_callbacks, their_callbacks)

    constants = constants_of(theirs)
    compare_names('constant', constants_of(ours), constants)
    opaque = {'MPI_ABI_Aint', 'MPI_ABI_Offset', 'MPI_ABI_Count'}
    compare_names('type', types_of(ours), types_of(theirs) - opaque, OUR_TYPES_ONLY)
    types = {t for t in types_of(theirs) & types_of(ours) if not t.endswith('_fn')}
    with tempfile.TemporaryDirectory() as scratch:
        our_values = values(include, 'mpi.h', constants & constants_of(ours), types, scratch)
        their_values = values(os.path.dirname(their_header), 'mpi_abi.h', constants & constants_of(ours), types, scratch)
    compare_signatures('value', our_values, their_values)

    our_symbols, their_symbols = symbols_of(library), symbols_of(their_library)
    declared = set(our_functions)
    removed = {f'MPI_{name}' for name in exports.REMOVED}
    for name in sorted(declared - set(our_symbols)):
        complain(f'symbol {name} is not exported')
    for name in sorted(set(our_symbols) - declared):
        if not name.startswith('motet_') and name not in removed:
            complain(f'symbol {name} is exported but not declared')
    for name in sorted(their_symbols.keys() - declared - our_symbols.keys()):
        if name.startswith('MPI_'):
            complain(f'symbol {name} is in {their_library} alone')
    for name in sorted(declared - extra - set(their_symbols)):
        complain(f'symbol {name} is not in {their_library}')
    for name, kind in our_symbols.items():
        if name in declared and kind != ('T' if name.startswith('P') else 'W'):
            complain(f'symbol {name} is of kind {kind}: MPI_ must be weak, PMPI_ strong')
    dynamic = subprocess.run(['readelf', '-d', library], check=True, capture_output=True, text=True, timeout=60).stdout
    if '[libmpi_abi.so.1]' not in dynamic:
        complain('the soname is not libmpi_abi.so.1')

    n = len([f for f in our_functions if f.startswith('MPI_')])
    print(f'{n} functions with their PMPI twins, {len(our_callbacks)} callback types, {len(our_values)} values, '
          f'{len(our_symbols)} symbols compared')
    if n != 664:
        complain(f'{n} functions instead of 664')
    if errors:
        sys.exit('\n'.join(errors))


main()
