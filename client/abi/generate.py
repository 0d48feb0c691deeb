# SPDX-License-Identifier: BSD-3-Clause
"""Generates the C interface from its description: generate.py DESCRIPTION-FOLDER OUTPUT-FOLDER."""

import os
import sys

import description
import header
import semantics

SECTION_FILES = ('types.txt', 'handles.txt', 'constants.txt', 'callbacks.txt', 'tool_types.txt')


def main():
    source, output = sys.argv[1:3]
    functions = description.read_functions(source)
    sections = [s for file in SECTION_FILES for s in description.read_sections(os.path.join(source, file))]
    header.write(os.path.join(output, 'mpi.h'), sections, functions)
    semantics.write(os.path.join(output, 'semantics.h'), functions)


if __name__ == '__main__':
    try:
        main()
    except (description.DescriptionError, OSError) as error:
        sys.exit(f'generate.py: {error}')
