# SPDX-License-Identifier: BSD-3-Clause
"""Writes what else is known from the description: the linker's version script and the list of missing functions."""


# What MPI-3 took away, which programs built for a library that kept it still ask for (removed.c). In no header.
REMOVED = ('Address', 'Errhandler_create', 'Errhandler_get', 'Errhandler_set', 'Type_extent', 'Type_hindexed', 'Type_hvector', 'Type_lb',
           'Type_struct', 'Type_ub')


def names(functions):
    for function in functions:
        for suffix in ('', '_c') if function.has('large') else ('',):
            yield function.name + suffix


def write_version_script(path, functions):
    """Exports the functions and nothing else, whatever the rest of the library declares."""
    lines = ['{', '  global:', '    motet_*;']
    for name in names(functions):
        lines += [f'    MPI_{name};', f'    PMPI_{name};']
    lines += [f'    MPI_{name};' for name in REMOVED]
    lines += ['  local: *;', '};']
    with open(path, 'w', encoding='ascii') as file:
        file.write('\n'.join(lines) + '\n')


def write_missing(path, functions):
    """The functions that raise MPI_ERR_UNSUPPORTED_OPERATION, one a line."""
    missing = [f for f in functions if not f.has('done') and not f.has('convert')]
    with open(path, 'w', encoding='ascii') as file:
        file.writelines(f'MPI_{name}\n' for name in names(missing))
