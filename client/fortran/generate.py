# SPDX-License-Identifier: BSD-3-Clause
"""Generates the Fortran interface: generate.py FOLDER-OF-THE-C-DESCRIPTION OUTPUT-FOLDER."""

import os
import sys

import c_bindings
import fortran
import modules


def main():
    api, output = sys.argv[1:3]
    here = os.path.dirname(os.path.realpath(__file__))
    functions, sections, differences = fortran.read(api)
    pairs = fortran.procedures(functions, differences)

    def out(name):
        return os.path.join(output, name)

    def template(name):
        return os.path.join(here, name + '.in')

    c_bindings.write(out('bindings.c'), pairs, differences)
    modules.write_constants(out('mpi_constants.f90'), sections)
    modules.write_types(out('mpi_f08_types.f90'), template('mpi_f08_types.f90'), sections)
    modules.write_modern(out('mpi_f08.f90'), template('mpi_f08.f90'), pairs, differences)
    modules.write_old(out('mpi.f90'), template('mpi.f90'), pairs, differences, sections)
    modules.write_header(out('mpif.h'), template('mpif.h'), sections)


if __name__ == '__main__':
    main()
