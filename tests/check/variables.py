# SPDX-License-Identifier: BSD-3-Clause
"""Every MOTET_ variable that the sources read stands in launcher/motetctl/variables.c, and motet(7) explains it: variables.py ROOT."""

import os
import re
import sys

FOLDERS = ('base', 'proto', 'client', 'daemon', 'launcher')
READS = re.compile(r'(?:getenv|setting_of|number_of|node_daemon_connect|parse_number)\("(MOTET_[A-Z_]+)"')
# Set for tests only, or told in the manual of the program that alone reads them (motet-lab).
ELSEWHERE = re.compile(r'MOTET_(TEST|LAB|TEST_\w+|LAB_\w+)$')


def main():
    root = sys.argv[1]
    read = {}
    for folder in FOLDERS:
        for path, _, files in os.walk(os.path.join(root, folder)):
            for file in files:
                if file.endswith(('.c', '.h')):
                    with open(os.path.join(path, file), encoding='utf-8') as source:
                        for name in READS.findall(source.read()):
                            read.setdefault(name, os.path.relpath(os.path.join(path, file), root))
    with open(os.path.join(root, 'launcher', 'motetctl', 'variables.c'), encoding='utf-8') as file:
        table = set(re.findall(r'^    {"(MOTET_\w+)\*?"', file.read(), re.M))
    with open(os.path.join(root, 'doc', 'man', 'motet.7'), encoding='utf-8') as file:
        manual = file.read()
    wrong = [f'{path} reads {name}, which launcher/motetctl/variables.c does not have' for name, path in read.items()
             if name not in table and not ELSEWHERE.match(name)]
    wrong += [f'doc/man/motet.7 does not explain {name}' for name in table if not re.search(rf'{name}\b|{name} Ns', manual)]
    print('\n'.join(wrong))
    print(f'{len(table)} variables, {len(wrong)} complaints')
    sys.exit(1 if wrong or len(read) < 5 else 0)


main()
