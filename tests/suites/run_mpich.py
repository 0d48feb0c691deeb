#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the C and Fortran programs of MPICH's own test suite, from the distribution's source package, compiled by our mpicc and mpifort.

    tests/suites/run_mpich.py                          every chapter on one node
    tests/suites/run_mpich.py --place two              over two nodes of one network
    tests/suites/run_mpich.py --place three            over three networks with two gateways in a row
    tests/suites/run_mpich.py --place mpich            the same programs on MPICH's library (its wheel)
    tests/suites/run_mpich.py --chapters pt2pt --only 'bsend*'
    tests/suites/run_mpich.py --chapters fortran       mpif.h, the modules mpi and mpi_f08

The suite's own lists say with how many ranks and which arguments a program runs and what makes it good: `No Errors` and nothing else, or
a failing exit code where that is what it tests. tests/suites/mpich_known.txt has what comes out otherwise, each with the reason; any
other failure, and a program of that list that is good, makes the exit code 1.

Works on the installation that MOTET_STAGE names (default build/stage); downloads and programs lie in MOTET_INPUTS (default build/inputs).
Every run has a deadline; what passes it is shown with its queues and ended.
"""
import argparse
import collections
import fnmatch
import os
import re
import shutil
import signal
import sys
import tempfile
import time

TESTS = os.path.realpath(os.path.join(os.path.dirname(__file__), '..'))
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True

from harness import inputs, places, stage  # noqa: E402  pylint: disable=wrong-import-position

CHAPTERS = ['attr', 'coll', 'comm', 'datatype', 'errhan', 'group', 'info', 'init', 'io', 'mpi_t', 'part', 'pt2pt', 'topo', 'errors/attr',
            'errors/basic', 'errors/coll', 'errors/comm', 'errors/datatype', 'errors/group', 'errors/io', 'errors/pt2pt', 'errors/spawn',
            'errors/topo', 'spawn', 'threads/coll', 'threads/comm', 'threads/init', 'threads/mpi_t', 'threads/part', 'threads/pt2pt', 'threads/spawn']
FORTRAN = [f'{form}/{chapter}' for form in ('f77', 'f90', 'f08') for chapter in (
    'attr', 'coll', 'comm', 'datatype', 'ext', 'info', 'init', 'pt2pt', 'rma', 'topo', 'misc', 'timer', 'profile', 'f90types', 'subarray')
    if form != 'f77' or chapter not in ('misc', 'timer', 'f90types', 'subarray')
    if chapter != 'f90types' or form == 'f90' if chapter != 'subarray' or form == 'f08']
CHAPTERS += FORTRAN
LEFT_OUT = ['cxx']  # the C++ interface, which MPI-3 took away; impls is about MPICH itself
KNOWN = os.path.join(TESTS, 'suites', 'mpich_known.txt')
DEADLINE_S = 180  # as in the suite
KNOWN_DEADLINE_S = 20  # where no good end is expected
GRACE_S = 5
LONGEST_OUTPUT = 3000
Case = collections.namedtuple('Case', 'chapter program n_ranks arguments environment options')


def name_of(case):
    return ' '.join([f'{case.chapter}/{case.program}', str(case.n_ranks), *case.arguments, *case.environment])


# ---- what is to be run ----

def read_list(path, chapter):
    cases = []
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = line.split('#')[0].split()
            if not words:
                continue
            n_ranks = int(words[1]) if len(words) > 1 and words[1].isdigit() else 2
            options = [word.partition('=')[::2] for word in words[1:] if '=' in word]
            environment = [value for key, value in options if key == 'env']
            if any('_CVAR_' in word for word in environment):
                continue  # a variable of MPICH's that chooses among its algorithms: the same run again
            cases.append(Case(chapter, words[0], n_ranks, tuple(value for key, value in options if key == 'arg'), tuple(environment),
                              tuple((key, value) for key, value in options if key not in ('arg', 'env'))))
    return cases


def cases_of(chapter, built, pools):
    """Every line of the chapter's lists once; testlist.dtp runs programs over many datatypes."""
    cases = {}
    for name in ('testlist', 'testlist.dtp') if pools else ('testlist',):
        for folder in built:
            path = os.path.join(folder, chapter, name)
            if os.path.exists(path):
                cases.update(dict.fromkeys(read_list(path, chapter)))
                break
    return list(cases)


def read_known():
    """(pattern of a name, places or None, reason) for each line."""
    known = []
    with open(KNOWN, encoding='utf-8') as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                pattern, reason = line.strip().split(': ', 1)
                place = re.fullmatch(r'(.*) @(\w+)', pattern)
                known.append((place[1] if place else pattern, place and place[2], reason))
    return known


def reason_for(case, known, place):
    name = name_of(case)
    return next((reason for pattern, where, reason in known if where in (None, place) and
                 any(fnmatch.fnmatchcase(name, form) for form in (pattern, pattern + ' *'))), None)


# ---- a run ----

def verdict(case, code, output):
    """None for a good run, else what is wrong."""
    # What mpiexec says of how a job ended is no output of the program.
    output = ''.join(line for line in output.splitlines(True) if not line.startswith('mpiexec: '))
    wanted = dict(case.options).get('resultTest')
    good = re.search(r'^\s*No [Ee]rrors\s*$', output, re.MULTILINE)
    if wanted in ('TestStatus', 'TestErrFatal'):
        return None if code else 'exit code 0, but it was to fail'
    if wanted == 'TestStatusNoErrors' and not code:
        return 'exit code 0, but it was to fail'
    if wanted != 'TestStatusNoErrors' and code:
        return f'exit code {code}'
    if not good:
        return 'no "No Errors"'
    return 'more output than "No Errors"' if re.sub(r'^\s*(No [Ee]rrors|Test Passed)\s*$', '', output, flags=re.MULTILINE).strip() else None


def run(case, place, built, limit_s):
    """(seconds, what is wrong or None, output)."""
    folder = os.path.join(built, case.chapter)
    environment = dict(place.environment, **dict(word.split('=', 1) for word in case.environment if '=' in word))
    if case.chapter == 'errors/coll':  # calls that do not fit together: the checking mode finds them
        environment.setdefault('MOTET_CHECK', 'collectives')
    if 'resultTest' in dict(case.options):  # one program tests that mpiexec ends it
        environment['MPIEXEC_TIMEOUT'] = f'{limit_s - GRACE_S:g}'
    words = [*place.words(case.n_ranks), os.path.join(built, case.chapter, case.program), *case.arguments]
    seconds, code, output = places.run(place, words, limit_s, cwd=folder, env=environment)
    return seconds, f'no end after {limit_s:g} s' if code is None else verdict(case, code, output), output


def memory_gib():
    return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30)


def run_chapter(chapter, place, folders, arguments, known):
    """Prints what is not good and a row. Returns the number of results that nothing explains."""
    built = folders[0]
    counts = collections.Counter()
    start = time.monotonic()
    for case in cases_of(chapter, folders, not arguments.no_pools):
        if arguments.only and not any(fnmatch.fnmatchcase(f'{case.program} {" ".join(case.arguments)}'.strip(), pattern) or
                                      fnmatch.fnmatchcase(case.program, pattern) for pattern in arguments.only):
            continue
        reason = reason_for(case, known, arguments.place)
        if not os.path.exists(os.path.join(built, chapter, case.program)):
            counts['bad' if reason is None else 'not built'] += 1
            if reason is None:
                print(f'  {name_of(case)}: not built', flush=True)
            continue
        if float(dict(case.options).get('mem', 0)) > memory_gib() / 2:
            counts['too large'] += 1
            continue
        limit_s = float(dict(case.options).get('timeLimit', DEADLINE_S)) if reason is None else KNOWN_DEADLINE_S
        seconds, wrong, output = run(case, place, built, limit_s * arguments.patience)
        if arguments.verbose:
            print(f'{seconds:7.1f} s  {wrong or "good"}  {name_of(case)}', flush=True)
        if not wrong:
            counts['good' if reason is None else 'better'] += 1
            if reason is not None:
                print(f'  {name_of(case)}: good, though it is known as: {reason}', flush=True)
        elif reason is not None:
            counts['known'] += 1
        else:
            counts['bad'] += 1
            print(f'  {name_of(case)}: {wrong} after {seconds:.1f} s')
            print(''.join(f'    | {line}\n' for line in output.strip()[:LONGEST_OUTPUT].splitlines()), end='', flush=True)
    print(f'{chapter:<18}' + ''.join(f'{counts[key]:>10}' for key in ('good', 'known', 'bad', 'better', 'not built', 'too large')) +
          f'{time.monotonic() - start:>9.0f} s', flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--chapters', nargs='+', choices=[*CHAPTERS, 'fortran'], default=CHAPTERS, metavar='CHAPTER',
                        help=', '.join([*CHAPTERS, 'fortran (all of f77, f90, f08)']))
    parser.add_argument('--only', nargs='+', metavar='PATTERN', help='programs, or programs with arguments')
    parser.add_argument('--place', choices=['node', *places.LABS, 'mpich'], default='node',
                        help='one node, two nodes, three networks, or MPICH')
    parser.add_argument('--patience', type=float, default=1.0, help="factor on the suite's deadlines")
    parser.add_argument('--no-pools', action='store_true', help='without the long lists of runs over pools of datatypes (testlist.dtp)')
    parser.add_argument('--verbose', action='store_true', help='a line for each run')
    arguments = parser.parse_args()
    if 'fortran' in arguments.chapters:
        arguments.chapters = [c for c in arguments.chapters if c != 'fortran'] + FORTRAN
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # by way of every `finally`
    installation = stage.find()
    folders = inputs.mpich_tests(installation, arguments.chapters)
    known = read_known()
    logs = tempfile.mkdtemp(prefix='motet-suite-')
    try:
        place = places.make(arguments.place, installation, logs)
        try:
            print(f'left out: {" ".join(LEFT_OUT)}')
            print(f'{"":<18}' + ''.join(f'{word:>10}' for word in ('good', 'known', 'bad', 'better', 'not built', 'too large')))
            total = collections.Counter()
            for chapter in arguments.chapters:
                total += run_chapter(chapter, place, folders, arguments, known)
        finally:
            place.close()
    finally:
        shutil.rmtree(logs)
    unexplained = total['bad'] + total['better']
    print(f'{sum(total.values())} runs: {total["good"]} good, {total["known"]} known differences, {unexplained} unexplained', flush=True)
    return 1 if unexplained or not total['good'] else 0


if __name__ == '__main__':
    sys.exit(main())
