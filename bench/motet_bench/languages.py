# SPDX-License-Identifier: BSD-3-Clause
"""Fortran beside C: two ranks of a node, the same message in each language, in turns of half a millisecond within one run."""
from . import shell
from .systems import say

BINDINGS = ('mpif.h', 'mpi', 'mpi_f08')


def fortran(bench):
    """8 bytes from C, mpif.h, the module mpi and mpi_f08, on each library of the standard ABI."""
    bench.table.begin('fortran', 'C and the three bindings of Fortran, two ranks on one node')
    program = bench.programs.fortran()
    for repeat in range(bench.repeats):
        for system in bench.systems:
            if not system.abi:
                continue
            try:
                out, _ = shell.run(system.launch(2, [program]), 120, system.environ())
            except shell.Failed as error:
                bench.table.fail(system.label, 'fortran', str(error))
                continue
            found = shell.results(out)
            for (name, size), (value, unit) in found.items():
                bench.table.add(system.label, name, size, value, unit)
            of_c = found['latency_c', 8][0]
            for binding in BINDINGS:
                bench.table.add(system.label, f'{binding}/C', 8, found[f'latency_{binding}', 8][0] / of_c, 'times')
        say(f'  repeat {repeat + 1} of {bench.repeats} done')
