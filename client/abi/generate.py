# SPDX-License-Identifier: BSD-3-Clause
"""Generates the C interface from its description: generate.py DESCRIPTION-FOLDER OUTPUT-FOLDER."""

import os
import sys

import bindings
import description
import entries
import exports
import header
import semantics

SECTION_FILES = ('types.txt', 'handles.txt', 'constants.txt', 'callbacks.txt', 'tool_types.txt')


def main():
    source, output = sys.argv[1:3]
    functions = description.read_functions(source)
    sections = [s for file in SECTION_FILES for s in description.read_sections(os.path.join(source, file))]
    header.write(os.path.join(output, 'mpi.h'), sections, functions)
    semantics.write(os.path.join(output, 'semantics.h'), functions)
    entries.write(os.path.join(output, 'entries.h'), os.path.join(output, 'entries.c'), functions)
    exports.write_version_script(os.path.join(output, 'mpi_abi.map'), functions)
    exports.write_missing(os.path.join(output, 'missing.txt'), functions)
    bindings.write(output, functions)


if __name__ == '__main__':
    try:
        main()
    except (description.DescriptionError, OSError) as error:
        sys.exit(f'generate.py: {error}')
