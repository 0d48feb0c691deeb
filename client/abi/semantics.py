# SPDX-License-Identifier: BSD-3-Clause
"""Writes semantics.h: the prototypes of the functions that people write, one for each MPI function."""

from header import result_type, wrap
from kinds import HANDLES, semantics_declarations

TOP = '''/* SPDX-License-Identifier: BSD-3-Clause */
/* What the generated bindings call. Every function runs with the library lock held (unless described as nolock), gets
 * checked arguments, and returns an error class. Generated from client/abi/api; do not edit. */
#ifndef MOTET_CLIENT_ABI_SEMANTICS_H
#define MOTET_CLIENT_ABI_SEMANTICS_H

#include <stdbool.h>

#include "client/object/intvec.h"
#include "mpi.h"

'''


def semantics_name(function):
    return 'mpi_' + function.get('as', function.name).lower()


def write(path, functions):
    lines = [TOP]
    for struct in sorted({struct for _, struct in HANDLES.values()}):
        lines.append(f'struct {struct};\n')
    lines.append('\n')
    for function in functions:
        if function.has('convert') or function.has('as'):
            continue
        parameters = [d for p in function.parameters for d in semantics_declarations(p)]
        if function.has('form'):
            parameters.append('bool large')
        lines.append(wrap(f'{result_type(function)} {semantics_name(function)}(', parameters or ['void']) + '\n')
    lines.append('\n#endif\n')
    with open(path, 'w', encoding='ascii') as file:
        file.writelines(lines)
