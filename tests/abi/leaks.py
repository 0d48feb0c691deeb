# SPDX-License-Identifier: BSD-3-Clause
"""MOTET_DEBUG=handles lists what a program has left behind, and nothing else: leaks.py RUN PROGRAM."""

import os
import re
import subprocess
import sys


def errors_of(words, run, program, mode):
    result = subprocess.run([run, '2', program, mode], capture_output=True, text=True, check=False, timeout=60,
                            env={**os.environ, 'MOTET_DEBUG': words})
    return result.returncode, sorted(line for line in result.stderr.splitlines() if line.startswith('motet:'))


def expect(found, patterns):
    code, lines = found
    if code or len(lines) != len(patterns) or not all(re.fullmatch(p, line) for p, line in zip(patterns, lines)):
        sys.exit(f'expected {patterns}\nfound {code} {lines}')


def main():
    run, program = sys.argv[1:]
    each = []
    for rank in range(2):
        each += [rf'motet: rank {rank}:   1 communicator \(left over\), from leaks\+0x[0-9a-f]+.*',
                 rf'motet: rank {rank}:   1 request, from leaks\+0x[0-9a-f]+.*',
                 rf'motet: rank {rank}:   3 datatypes, from leaks\+0x[0-9a-f]+.*',
                 f'motet: rank {rank}: 5 handles were not freed at the end of MPI']
    expect(errors_of('handles', run, program, 'world'), each)
    expect(errors_of('handles', run, program, 'nothing'), [])
    expect(errors_of('', run, program, 'world'), [])
    each = []
    for rank in range(2):
        each += [rf'motet: rank {rank}:   1 group, from leaks\+0x[0-9a-f]+.*', f'motet: rank {rank}: 1 handle was not freed at the end of MPI']
    expect(errors_of('handles', run, program, 'session'), each)
    code, lines = errors_of('handles,magic', run, program, 'nothing')
    if not code or not all('MOTET_DEBUG has the word magic; known is handles' in line for line in lines):
        sys.exit(f'an unknown word: {code} {lines}')
    print('leaks are told as they should be')


main()
