# SPDX-License-Identifier: BSD-3-Clause
"""Every function of mpi.h has a manual page that says all it should, and groff warns of none: manual_pages.py MAN3 MPI.H."""

import os
import re
import shutil
import subprocess
import sys

SECTIONS = ('NAME', 'SYNOPSIS', 'DESCRIPTION', 'RETURN VALUES', 'STANDARDS')


def prototypes(header):
    """name -> names of its parameters, from mpi.h."""
    with open(header, encoding='ascii') as file:
        text = ' '.join(file.read().split())
    found = {}
    for name, parameters in re.findall(r'\b(MPI_\w+)\(([^()]*)\);', text):
        found[name] = [re.search(r'(\w+)[\]\[\d]*$', p.strip())[1] for p in parameters.split(',') if p.strip() not in ('void', '...')]
    return found


def complaints_of(folder, name, parameters):
    path = os.path.join(folder, name + '.3')
    if not os.path.exists(path):
        yield f'{name}: no page'
        return
    with open(path, encoding='ascii') as file:
        text = file.read()
    target = re.match(r'\.so man3/(MPI_\w+\.3)\n$', text)
    if target:
        with open(os.path.join(folder, target[1]), encoding='ascii') as file:
            text = file.read()
    for section in SECTIONS:
        if f'\n.Sh {section}\n' not in text:
            yield f'{name}: no section {section}'
    if f'\n.Fo {name}\n' not in text:
        yield f'{name}: not in the synopsis'
    for parameter in parameters:
        if not re.search(rf'\n\.It Fa {parameter} Pq (in|out|in-out)[^\n]*\n\S', text):
            yield f'{name}: {parameter} is not described'


def main():
    folder, header = sys.argv[1:3]
    functions = prototypes(header)
    assert len(functions) > 650, len(functions)
    complaints = [c for name, parameters in functions.items() for c in complaints_of(folder, name, parameters)]
    complaints += [f'{page}: of no function' for page in os.listdir(folder) if page[:-2] not in functions]
    if shutil.which('groff'):
        pages = [name + '.3' for name in functions if not name.endswith('_c') or name[:-2] not in functions]
        result = subprocess.run(['groff', '-ww', '-mandoc', '-Tutf8', '-z', *pages], cwd=folder, capture_output=True, text=True,
                                timeout=120, check=False)
        # A name and its first parameter may be wider together than a line of 78 columns.
        complaints += [line for line in result.stderr.splitlines() if not line.endswith("can't break line")]
    else:
        print('groff is not there: the pages were not formatted')
    print('\n'.join(complaints))
    print(f'{len(functions)} functions, {len(complaints)} complaints')
    sys.exit(1 if complaints else 0)


main()
