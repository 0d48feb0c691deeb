#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds MPI programs of other people from the distribution's source packages with our mpicc, unchanged, and runs their tests; the NAS
Parallel Benchmarks are in this tree.

    tests/suites/run_programs.py                       everything: on one node, and over three networks with two gateways in a row
    tests/suites/run_programs.py --mpich               also the same binaries on MPICH's library, in turns: seconds, and results compared
    tests/suites/run_programs.py --places node --only hypre 'fftw3 *'
    tests/suites/run_programs.py --list

tests/suites/programs.json says for each program which package (or folder of this tree) it comes from, how it is built, which commands run
it and what makes a run good. A row for each run; the exit code is 1 if a run was not good for a reason that the file does not name, or a
program did not build.

Works on the installation that MOTET_STAGE names (default build/stage); downloads and programs lie in MOTET_INPUTS (default build/inputs).
Every run works in a folder of its own and has a deadline; what passes it is shown with its queues and ended.
"""
import argparse
import collections
import fnmatch
import glob
import json
import os
import re
import shutil
import signal
import sys
import tempfile

TESTS = os.path.realpath(os.path.join(os.path.dirname(__file__), '..'))
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True

from harness import inputs, places, stage  # noqa: E402  pylint: disable=wrong-import-position

PROGRAMS = os.path.join(TESTS, 'suites', 'programs.json')
PLACES = ['node', 'three']
BUILD_S = 3600
DEADLINE_S = 300
RANKS_OVER_NETWORKS = 4
LONGEST_OUTPUT = 2000
PROGRAM_KEYS = {'about', 'package', 'tree', 'folder', 'needs', 'build', 'runs'}
RUN_KEYS = {'name', 'command', 'ranks', 'ranks_over_networks', 'files', 'good', 'bad', 'same', 'deadline_s', 'places', 'known'}


# ---- what is to be run ----

def read_programs():
    """name -> description. A key that nobody reads is a mistake in the file."""
    with open(PROGRAMS, encoding='utf-8') as file:
        programs = json.load(file)
    for name, program in programs.items():
        unknown = set(program) - PROGRAM_KEYS
        for run in program['runs']:
            unknown |= set(run) - RUN_KEYS
        if unknown:
            sys.exit(f'{PROGRAMS}: {name}: no such keys: {", ".join(sorted(unknown))}')
    return programs


def wanted(programs, patterns):
    """(name of the program, its runs) for what the patterns name: a program, or a program and a run."""
    for name, program in programs.items():
        runs = [run for run in program['runs'] if not patterns or any(fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(
            f'{name} {run["name"]}', pattern) for pattern in patterns)]
        if runs:
            yield name, runs


def built(installation, name, program):
    """The folder in which the program was built: a copy of its source tree."""
    missing = [need for need in program.get('needs', []) if not (glob.glob(need) if '/' in need else shutil.which(need))]
    assert not missing, f'this machine lacks {" ".join(missing)}'
    environment = dict(os.environ, PATH=f'{os.path.join(installation.prefix, "bin")}:{os.environ["PATH"]}')
    ours = 'folder' in program
    source = os.path.join(stage.ROOT, program['folder']) if ours else None

    def build(path):
        tree = os.path.join(path, 'tree')
        shutil.copytree(source if ours else inputs.debian_source(program['package'], program['tree']), tree, symlinks=True)
        for command in program['build']:
            stage.run(['sh', '-c', command], BUILD_S, env=environment, cwd=tree)

    version = [inputs.fingerprint(installation), *([inputs.digest_of_folder(source)] if ours else [])]
    return os.path.join(inputs.once('-'.join(['program', name, *version]), build), 'tree')


# ---- a run ----

def run_once(place, run, tree, n_ranks, patience):
    """(seconds, what is wrong or None, output) of a run in a fresh folder with the files that it wants."""
    limit_s = run.get('deadline_s', DEADLINE_S) * patience
    with tempfile.TemporaryDirectory(prefix='motet-suite-') as folder:
        for pattern in run.get('files', []):
            found = glob.glob(os.path.join(tree, pattern))
            if not found:
                return 0.0, f'no file {pattern}', ''
            for path in found:
                copy = shutil.copytree if os.path.isdir(path) else shutil.copy
                copy(path, os.path.join(folder, os.path.basename(path)))
        mpiexec = ' '.join(map(str, place.mpiexec()))
        command = run['command'].replace('{mpiexec}', mpiexec).replace('{tree}', tree).replace('{n}', str(n_ranks))
        words = place.shell(['sh', '-c', f'cd {folder} && {command}'])
        seconds, code, output = places.run(place, words, limit_s)
    if code is None:
        return seconds, f'no end after {limit_s:g} s', output
    if code:
        return seconds, f'exit code {code}', output
    bad = re.search(run['bad'], output, re.MULTILINE) if 'bad' in run else None
    if bad:
        return seconds, f'it says "{bad[0]}"', output
    if 'good' in run and not re.search(run['good'], output, re.MULTILINE):
        return seconds, f'it does not say "{run["good"]}"', output
    return seconds, None, output


def results_of(run, output):
    """The lines of the output that must be the same on both libraries."""
    return sorted(line.strip() for line in output.splitlines() if re.search(run['same'], line))


def compared(run, ours, theirs):
    """What is wrong with our run beside MPICH's, or None."""
    if ours[1]:
        return ours[1] + (f'; MPICH: {theirs[1]}' if theirs[1] else '')
    if not theirs[1] and 'same' in run:
        differ = set(results_of(run, ours[2])) ^ set(results_of(run, theirs[2]))
        if differ:
            return f'results differ from MPICH: {sorted(differ)[:4]}'
    return None


class Table:
    """The rows as they come, and their sum."""

    def __init__(self):
        self.counts = collections.Counter()
        print(f'{"program":<40}{"ranks":>6} {"place":<6}{"seconds":>9}{"MPICH":>9}  verdict', flush=True)

    def row(self, title, n_ranks, place, ours, theirs, wrong, known):
        kind = 'good' if not wrong and not known else 'better' if not wrong else 'known' if known else 'bad'
        good = 'good' + (f' (on MPICH: {theirs[1]})' if theirs and theirs[1] else '')
        said = {'good': good, 'better': f'good, though known: {known}', 'known': f'known: {known}', 'bad': f'BAD: {wrong}'}[kind]
        seconds = [f'{result[0]:.1f}' if result else '' for result in (ours, theirs)]
        print(f'{title:<40}{n_ranks:>6} {place:<6}{seconds[0]:>9}{seconds[1]:>9}  {said}')
        if kind == 'bad':
            print(''.join(f'    | {line}\n' for line in ours[2].strip()[-LONGEST_OUTPUT:].splitlines()), end='')
        sys.stdout.flush()
        self.counts[kind] += 1


def run_program(table, name, runs, tree, where, mpich, arguments):
    """All runs of a program at the places `where` (name -> place)."""
    for run in runs:
        for label, place in where.items():
            if label not in run.get('places', arguments.places):
                continue
            all_ranks = run['ranks'] if label == 'node' else run.get('ranks_over_networks', [RANKS_OVER_NETWORKS])
            for n_ranks in arguments.ranks or all_ranks:
                ours = run_once(place, run, tree, n_ranks, arguments.patience)
                theirs = run_once(mpich, run, tree, n_ranks, arguments.patience) if mpich and label == 'node' else None
                wrong = compared(run, ours, theirs) if theirs else ours[1]
                try:
                    place.assert_clean()
                except AssertionError as error:
                    wrong = wrong or str(error)
                table.row(f'{name} {run["name"]}', n_ranks, label, ours, theirs, wrong, run.get('known', {}).get(label))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--only', nargs='+', metavar='PATTERN', help="programs, or 'program run'")
    parser.add_argument('--places', nargs='+', choices=['node', *places.LABS], default=PLACES,
                        help='one node, two nodes, three networks (default: one node and three networks)')
    parser.add_argument('--ranks', nargs='+', type=int, help='these numbers of ranks instead of those of the file')
    parser.add_argument('--mpich', action='store_true', help="run on MPICH's library too, and compare")
    parser.add_argument('--patience', type=float, default=1.0, help='factor on the deadlines')
    parser.add_argument('--list', action='store_true', help='name the programs and their runs, and end')
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # by way of every `finally`
    programs = read_programs()
    chosen = list(wanted(programs, arguments.only))
    if not chosen:
        parser.error('no such program: --list names them')
    if arguments.list:
        for name, runs in chosen:
            print(f'{name}: {programs[name]["about"]}\n    ' + ', '.join(run['name'] for run in runs))
        return 0
    installation = stage.find()
    logs = tempfile.mkdtemp(prefix='motet-suite-')
    where = {}
    try:
        mpich = places.make('mpich', installation, logs) if arguments.mpich else None
        trees = {}
        table = Table()
        for name, _ in chosen:
            try:
                trees[name] = built(installation, name, programs[name])
            except AssertionError as error:
                table.row(f'{name} build', '', '', (0.0, None, str(error)), None, 'it does not build', None)
        for label in arguments.places:
            where[label] = places.make(label, installation, logs)
        for name, runs in chosen:
            if name in trees:
                run_program(table, name, runs, trees[name], where, mpich, arguments)
    finally:
        for place in where.values():
            place.close()
        shutil.rmtree(logs)
    unexplained = table.counts['bad'] + table.counts['better']
    print(f'{sum(table.counts.values())} runs: {table.counts["good"]} good, {table.counts["known"]} known differences, '
          f'{unexplained} unexplained', flush=True)
    return 1 if unexplained or not table.counts['good'] else 0


if __name__ == '__main__':
    sys.exit(main())
