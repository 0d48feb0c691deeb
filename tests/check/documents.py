#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails when a document names a file that is not there, or a C function that no source has.

usage: tests/check/documents.py [FOLDER]

Of each Markdown file: what stands in backquotes and looks like a path of this tree (client/p2p/match.c, tests/sim/, also without its
beginning where one file ends so), and, in CONTRIBUTING.md, each `name()`.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOP = ('base', 'proto', 'client', 'daemon', 'launcher', 'tests', 'bench', 'conf', 'doc', 'examples')
SUFFIXES = ('c', 'h', 'py', 'md', 'json', 'proto', 'pml', 'api', 'views', 'toml', 'build', 'conf')
PATH = re.compile(r'`((?:[\w.-]+/)+[\w.-]*)`|`([\w-]+\.(?:' + '|'.join(SUFFIXES) + r'))`')
CALL = re.compile(r'`(\w+)\(\)`')
ELSEWHERE = {'build', 'mpi.h', 'semantics.h'}  # what a build makes
ANY = re.compile(r'[A-Z]{4,}')  # NAME, FAMILY: stands for whatever the reader has in mind


def tracked(root):
    names = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], cwd=root, capture_output=True, text=True,
                           check=True).stdout.split('\n')
    return [name for name in names if (root / name).is_file()]


def known_path(path, names):
    """A file or folder of the tree, by its whole path or its end."""
    path = path.rstrip('/')
    if any(name == path or name.startswith(path + '/') or name.endswith('/' + path) or f'/{path}/' in name for name in names):
        return True
    # A module without its suffix.
    return any(name.rpartition('.')[0] == path or name.rpartition('.')[0].endswith('/' + path) for name in names)


def check(root):
    names = tracked(root)
    sources = '\n'.join((root / name).read_text(encoding='utf-8') for name in names if name.endswith(('.c', '.h', '.api')))
    for document in names:
        if not document.endswith('.md') or document == 'CHANGES.md':
            continue
        for number, line in enumerate((root / document).read_text(encoding='utf-8').split('\n'), 1):
            for whole, bare in PATH.findall(line):
                path = whole or bare
                if (whole and path.split('/')[0] not in TOP) or (bare and bare[0].isupper()):
                    continue
                if not ELSEWHERE & set(path.split('/')) and not ANY.search(path) and not known_path(path, names):
                    yield f'{document}:{number}: {path} is not there'
            if document == 'CONTRIBUTING.md':
                for name in CALL.findall(line):
                    if not ANY.search(name) and not re.search(rf'\b{name}\(', sources):
                        yield f'{document}:{number}: {name}() is nowhere'


def main():
    complaints = list(check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
    print('\n'.join(complaints) if complaints else 'nothing')
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
