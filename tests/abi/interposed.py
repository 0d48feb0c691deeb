# SPDX-License-Identifier: BSD-3-Clause
"""A profiler sees every call of an application and none of the library's own: interposed.py LIBRARY INTERPOSER FUZZ RUN PROGRAM

By the library's file: each MPI_ function is a weak name for its strong PMPI_ twin, and the library refers to neither. By running: with
the interposing library in front, all functions of the fuzz program are seen, and of a program of collectives only those that it
refers to."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'client', 'abi'))
import exports


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def check_symbols(library):
    symbols = {}
    for line in output_of('nm', '-D', '--defined-only', library).splitlines():
        address, kind, name = line.split()[:3]
        symbols[name.split('@')[0]] = (address, kind)
    removed = {f'MPI_{name}' for name in exports.REMOVED}  # for old binaries, of which no profiler is told
    names = sorted(name for name in symbols if name.startswith('MPI_') and name not in removed)
    wrong = [n for n in names if symbols[n][1] not in 'WV' or symbols.get('P' + n, (None, ''))[1] != 'T'
             or symbols['P' + n][0] != symbols[n][0]]
    if wrong or len(names) < 664:
        sys.exit(f'{len(names)} functions; not a weak name of a strong PMPI function: {" ".join(wrong)}')
    if [n for n in symbols if n.startswith('PMPI_') and n[1:] not in symbols]:
        sys.exit('a PMPI function has no MPI name')
    inside = [line for line in output_of('readelf', '-rW', library).splitlines() if re.search(r'\bP?MPI_\w', line)]
    if inside:
        sys.exit('the library calls itself through public names:\n' + '\n'.join(inside))
    print(f'{len(names)} functions are weak names of PMPI functions; nothing inside refers to either')
    return set(names)


def seen_by(interposer, *command):
    """Names of the functions that a command calls."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, 'calls')
        result = subprocess.run(command, env={**os.environ, 'LD_PRELOAD': interposer, 'MOTET_TEST_CALLS': log}, capture_output=True,
                                text=True, check=False, timeout=240)
        if result.returncode:
            sys.exit(f'{command}: status {result.returncode}\n{result.stdout}{result.stderr}')
        with open(log, encoding='ascii') as file:
            return set(file.read().split())


def main():
    library, interposer, fuzz, run, program = sys.argv[1:]
    names = check_symbols(library)
    missed = names - seen_by(interposer, fuzz)
    if missed:
        sys.exit(f'never seen: {" ".join(sorted(missed))}')
    print(f'all {len(names)} functions were seen')
    seen = seen_by(interposer, run, '3', program, '20')
    inner = seen - set(re.findall(r'\bMPI_\w+', output_of('nm', '-u', program)))
    if inner or len(seen) < 60:
        sys.exit(f'{len(seen)} functions seen; called, but not by the program: {" ".join(sorted(inner))}')
    print(f'{len(seen)} functions of a program of collectives were seen, all of them its own')


main()
