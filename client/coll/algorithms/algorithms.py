# SPDX-License-Identifier: BSD-3-Clause
"""Writes algorithms.h (names and prototypes) and algorithms.c (the table) from algorithms.txt.

    algorithms.py TABLE OUT_HEADER OUT_SOURCE
"""
import sys

FAMILIES = ('barrier', 'bcast', 'gather', 'scatter', 'allgather', 'alltoall', 'reduce', 'allreduce', 'reduce_scatter', 'scan')
NEEDS = ('regular', 'pof2', 'nodes', 'shared', 'networks')
TOP = '/* SPDX-License-Identifier: BSD-3-Clause */\n/* Generated from client/coll/algorithms/algorithms.txt; do not edit. */\n'


def read_rows(path):
    """[(family, name, needs)] in the order of the file; SystemExit with the line for what is not understood."""
    rows = []
    with open(path, encoding='ascii') as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0].startswith('#'):
                continue
            where = f'{path}:{number}'
            if len(words) < 2:
                raise SystemExit(f'{where}: expected a family and a name')
            family, name, needs = words[0], words[1], words[2:]
            if family not in FAMILIES:
                raise SystemExit(f'{where}: no family {family}: expected one of {", ".join(FAMILIES)}')
            if not name.isidentifier():
                raise SystemExit(f'{where}: {name} is no name')
            if any(row[:2] == (family, name) for row in rows):
                raise SystemExit(f'{where}: {family} {name} is there already')
            for need in needs:
                if need not in NEEDS:
                    raise SystemExit(f'{where}: no need {need}: expected {", ".join(NEEDS)}')
            rows.append((family, name, needs))
    for family in FAMILIES:
        if not any(row[0] == family for row in rows):
            raise SystemExit(f'{path}: {family} has no algorithm')
    return sorted(rows, key=lambda row: FAMILIES.index(row[0]))


def header(rows):
    names = ''.join(f'    {family.upper()}_{name.upper()},\n' for family, name, _ in rows)
    prototypes = ''.join(f'{family}_algorithm {family}_{name};\n' for family, name, _ in rows)
    return f'''{TOP}#ifndef MOTET_CLIENT_COLL_ALGORITHMS_ALGORITHMS_H
#define MOTET_CLIENT_COLL_ALGORITHMS_ALGORITHMS_H

#include "client/coll/family/algorithm.h"

/* Places in the table; those of a family lie together. */
enum algorithm_name {{
{names}    ALGORITHMS
}};

extern const struct algorithm algorithm_table[ALGORITHMS];

{prototypes}
#endif
'''


def source(rows):
    entries = ''
    for family, name, needs in rows:
        bits = ' | '.join(f'NEEDS_{need.upper()}' for need in needs) or 'NEEDS_NOTHING'
        entries += f'    {{"{name}", COLL_{family.upper()}, {bits}, {{.{family} = {family}_{name}}}}},\n'
    return f'''{TOP}#include "client/coll/algorithms/algorithms.h"

const struct algorithm algorithm_table[ALGORITHMS] = {{
{entries}}};
'''


def main():
    rows = read_rows(sys.argv[1])
    for path, text in ((sys.argv[2], header(rows)), (sys.argv[3], source(rows))):
        with open(path, 'w', encoding='ascii') as file:
            file.write(text)


if __name__ == '__main__':
    main()
