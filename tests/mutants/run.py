#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants one-line bugs, one at a time, and says which the tests catch.

usage: tests/mutants/run.py [--only WORD ...] [--sample N [--seed S]] [--jobs N] [--build DIR] | --list | --check [--names BUILD]

The sources are copied to DIR (default build/mutants) and built there; the checkout is not touched. Each bug is planted, what the tests
named by its entry need is built, and the tests run, the quickest first, until one fails or does not end in time. Then the bug is taken
out again. A line for each bug and a table for each area; the exit code is 1 where fewer than 95 % are caught, or an entry no longer fits
the sources or does not compile. README.md says how an entry is written.
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time

from process import end_all_on_signals, run

import mutant as lists

DEMANDED_PERCENT = 95
SKIPPED = 77  # exit code of a test that cannot run here
SHORTEST_LIMIT_S = 20  # for a test that is over at once: the machine may be busy
SLOWER = 8  # a mutated test that takes so many times longer than the healthy one hangs
BUILD_LIMIT_S = 1800
BEGIN, END = '<!-- mutants: written by tests/mutants/run.py --write -->', '<!-- mutants: end -->'
PYTEST = ['/usr/bin/python3', '-m', 'pytest', '-q', '-x', '-p', 'no:cacheprovider']


def read_tests(build):
    """Meson's tests by their names."""
    with open(build / 'meson-info' / 'intro-tests.json', encoding='utf-8') as file:
        return {test['name']: test for test in json.load(file)}


def named(tests, patterns):
    """The tests that these names, patterns and suites mean, in that order; within a suite as meson has them."""
    found = []
    for pattern in patterns:
        if pattern.startswith('pytest:'):
            names = [pattern]
        elif pattern.startswith('suite:'):
            suite = pattern.removeprefix('suite:')
            names = [name for name, test in tests.items() if suite in {word.rpartition(':')[2] for word in test['suite']}]
        else:
            names = [name for name in tests if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            raise ValueError(f'there is no test {pattern}')
        found += [name for name in names if name not in found]
    return found


def unknown_tests(build, mutants):
    tests = read_tests(pathlib.Path(build))
    for mutant in mutants:
        try:
            named(tests, mutant.caught_by)
        except ValueError as error:
            yield f'{mutant.id}: {error}'


class Tree:
    """A copy of the sources with a build folder of its own."""

    def __init__(self, folder, log):
        self.folder = folder
        self.source = folder / 'source'
        self.build = folder / 'build'
        self.stage = folder / 'stage'
        self.log = log
        self.healthy = {}  # test -> seconds that it takes without a bug; None: it does not pass, or was skipped

    def copy(self):
        """Brings the copy up to date and leaves the times of equal files alone, so that little is built again."""
        names = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=lists.ROOT,
                               capture_output=True, check=True).stdout.decode().split('\0')
        wanted = {name for name in names if name and (lists.ROOT / name).is_file()}
        for name in wanted:
            source, target = lists.ROOT / name, self.source / name
            if not target.is_file() or source.read_bytes() != target.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)
        for target in [path for path in self.source.rglob('*') if path.is_file()]:
            if str(target.relative_to(self.source)) not in wanted and '__pycache__' not in target.parts:
                target.unlink()

    def set_up(self):
        self.copy()
        environment = dict(os.environ)
        if shutil.which('ccache'):
            environment['CC'] = f'ccache {os.environ.get("CC", "gcc")}'
        # Without debug information and with little optimization: most of a mutant's time is compiling and linking.
        command = ['meson', 'setup', str(self.build), str(self.source), f'--prefix={self.stage}', '-Dtests=enabled', '-Doptimization=1',
                   '-Ddebug=false']
        if not (self.build / 'build.ninja').is_file():
            shutil.rmtree(self.build, ignore_errors=True)
            code, output = run(command, BUILD_LIMIT_S, env=environment)
            if code != 0:
                raise RuntimeError(f'meson failed\n{output}')
        code, output = self.ninja(['build.ninja'])
        if code != 0:
            raise RuntimeError(f'meson failed\n{output}')
        self.read()

    def read(self):
        self.tests = read_tests(self.build)
        with open(self.build / 'meson-info' / 'intro-targets.json', encoding='utf-8') as file:
            self.targets = {target['id']: [os.path.relpath(name, self.build) for name in target['filename']] for target in json.load(file)}

    def ninja(self, targets):
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.folder), CCACHE_NOHASHDIR='1')
        return run(['ninja', '-C', str(self.build), *targets], BUILD_LIMIT_S, env=environment)

    def make(self, test):
        """Builds what a test needs. Returns what the compiler said if that fails."""
        if test.startswith('pytest:'):
            code, output = self.ninja([])
            if code == 0:
                code, output = run(['meson', 'install', '-C', str(self.build), '--no-rebuild', '--quiet'], BUILD_LIMIT_S)
        else:
            ids = self.tests[test]['depends']
            code, output = self.ninja([name for one in ids for name in self.targets.get(one, [])]) if ids else (0, '')
        return None if code == 0 else output

    def execute(self, test, limit_s):
        if test.startswith('pytest:'):
            words = test.removeprefix('pytest:').split()
            environment = dict(os.environ, MOTET_STAGE=str(self.stage), MOTET_BUILD=str(self.build), PYTHONDONTWRITEBYTECODE='1')
            return run(PYTEST + words, limit_s, cwd=self.source, env=environment)
        entry = self.tests[test]
        return run(entry['cmd'], limit_s, cwd=entry['workdir'] or self.build, env=dict(os.environ, **entry['env']))

    def time_healthy(self, test):
        """How long a test takes without a bug: it has to pass first, or what it says of a bug means nothing."""
        if test not in self.healthy:
            complaint = self.make(test)
            if complaint:
                raise RuntimeError(f'the sources do not build\n{complaint[-4000:]}')
            limit_s = 600 if test.startswith('pytest:') else self.tests[test]['timeout']
            for _ in range(2):
                start = time.monotonic()
                code, output = self.execute(test, limit_s)
                self.healthy[test] = time.monotonic() - start if code == 0 else None
                if code in (0, SKIPPED):
                    break
            else:
                self.log(f'left out: {test} fails without any bug\n{output[-2000:]}')
        return self.healthy[test]

    def try_mutant(self, mutant):
        """One bug in and out. Returns (verdict, detail)."""
        try:
            tests = named(self.tests, mutant.caught_by)
            path, mutated = mutant.plant(self.source)
        except ValueError as error:
            return 'does not apply', str(error)
        healthy = (self.source / path).read_text(encoding='utf-8')
        n_passed = 0
        try:
            for test in tests:
                if test not in self.healthy:
                    self.put(path, healthy)
                if self.time_healthy(test) is None:
                    continue
                self.put(path, mutated)
                verdict = self.try_test(test)
                if verdict:
                    return verdict
                n_passed += 1
        finally:
            self.put(path, healthy)
        return ('SURVIVED', f'{n_passed} tests passed') if n_passed else ('does not apply', 'none of its tests runs here')

    def put(self, path, text):
        """Writes a source file unless it reads so already, for the sake of what would be built again."""
        if (self.source / path).read_text(encoding='utf-8') != text:
            (self.source / path).write_text(text, encoding='utf-8')

    def try_test(self, test):
        """(verdict, detail), or None when the test passes."""
        complaint = self.make(test)
        if complaint:
            return 'does not build', next((line for line in complaint.splitlines() if 'error' in line), complaint[-300:])
        code, _ = self.execute(test, max(SHORTEST_LIMIT_S, SLOWER * self.healthy[test]))
        if code is None:
            return 'caught', f'{test} (does not end)'
        return None if code in (0, SKIPPED) else ('caught', test)


class Report:
    """Prints from all threads, counts, and keeps the verdicts in a file, if there is to be one, so that a long run may be done in parts."""

    def __init__(self, path=None):
        self.lock = threading.Lock()
        self.path = path
        self.verdicts = {}  # id -> (area, verdict, detail)
        if path and path.is_file():
            self.verdicts = {name: tuple(entry) for name, entry in json.loads(path.read_text(encoding='utf-8')).items()}

    def say(self, text):
        with self.lock:
            print(text, flush=True)

    def add(self, mutant, verdict, detail, seconds):
        if verdict == 'SURVIVED' and mutant.survives:
            verdict, detail = 'survives', mutant.survives
        with self.lock:
            self.verdicts[mutant.id] = (mutant.area, verdict, detail)
            if self.path:
                fresh = self.path.with_suffix('.new')
                fresh.write_text(json.dumps(self.verdicts, indent=1), encoding='utf-8')
                fresh.rename(self.path)
        self.say(f'{mutant.id:40} {verdict:14} {detail}  ({seconds:.0f} s)')

    def table(self, mutants):
        """The lines of a Markdown table of these bugs, and whether enough of them are caught."""
        areas = collections.defaultdict(collections.Counter)
        for mutant in mutants:
            for area in (mutant.area, 'all'):
                areas[area][self.verdicts[mutant.id][1]] += 1
        lines = ['| area | bugs | caught | percent | survived | invalid |', '| --- | ---: | ---: | ---: | ---: | ---: |']
        for area in sorted(areas, key=lambda name: (name == 'all', name)):
            counts = areas[area]
            lines.append(f'| {area} | {counts.total()} | {counts["caught"]} | {100 * counts["caught"] / counts.total():.1f} | '
                         f'{counts["SURVIVED"] + counts["survives"]} | {counts["does not apply"] + counts["does not build"]} |')
        counts = areas['all']
        invalid = counts['does not apply'] + counts['does not build']
        return lines, not invalid and 100 * counts['caught'] >= DEMANDED_PERCENT * counts.total()


def write_table(lines):
    """Puts the table into doc/testing.md."""
    path = lists.ROOT / 'doc' / 'testing.md'
    text = path.read_text(encoding='utf-8')
    fresh, n = re.subn(f'{re.escape(BEGIN)}.*?{re.escape(END)}', lambda _: '\n'.join([BEGIN, *lines, END]), text, flags=re.DOTALL)
    if n != 1:
        sys.exit(f'run.py: {path} has no place for the table')
    path.write_text(fresh, encoding='utf-8')


def work(tree, todo, report):
    try:
        tree.set_up()
        while True:
            try:
                mutant = todo.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            report.add(mutant, *tree.try_mutant(mutant), time.monotonic() - start)
    except (RuntimeError, OSError) as error:
        report.say(f'run.py: {error}')


def chosen(args):
    mutants = lists.load()
    if args.only:
        mutants = [mutant for mutant in mutants if any(mutant.area == word or fnmatch.fnmatchcase(mutant.id, word) for word in args.only)]
    if args.sample:
        mutants = random.Random(args.seed).sample(mutants, min(args.sample, len(mutants)))
    # Neighbours in one file follow one another: what is taken out and what is planted is then one thing to compile.
    return sorted(mutants, key=lambda mutant: (mutant.file, mutant.id))


def main():
    parser = argparse.ArgumentParser(description='Plants one-line bugs and says which the tests catch.')
    parser.add_argument('--only', nargs='+', metavar='WORD', help='only these areas or ids (patterns as of the shell)')
    parser.add_argument('--sample', type=int, metavar='N', help='only N of them')
    parser.add_argument('--seed', type=int, default=int(time.time()), help='which ones; printed')
    parser.add_argument('--jobs', type=int, default=1, help='so many copies at once')
    parser.add_argument('--build', default=str(lists.ROOT / 'build' / 'mutants'), metavar='DIR', help='where the copies are built')
    parser.add_argument('--results', type=pathlib.Path, metavar='FILE', help='keep verdicts there; bugs that have one are not tried again')
    parser.add_argument('--write', action='store_true', help='put the table into doc/testing.md')
    parser.add_argument('--list', action='store_true', help='show the entries and end')
    parser.add_argument('--check', action='store_true', help='only see that every entry fits the sources')
    parser.add_argument('--names', metavar='BUILD', help="with --check: that the tests it names are among those of this build folder")
    parser.add_argument('--lenient', action='store_true', help='with --check: say what does not fit, and pass (not under MOTET_CI)')
    args = parser.parse_args()
    try:
        mutants = chosen(args)
        if args.list:
            for mutant in mutants:
                print(f'{mutant.id:40} {mutant.area:12} {mutant.file}: {mutant.why}')
            return 0
        if args.check:
            problems = list(lists.check(lists.ROOT, mutants)) + (list(unknown_tests(args.names, mutants)) if args.names else [])
            print('\n'.join(problems + [f'{len(mutants)} entries, {len(problems)} complaints']))
            return 1 if problems and (os.environ.get('MOTET_CI') or not args.lenient) else 0
    except ValueError as error:
        sys.exit(f'run.py: {error}')
    if args.sample:
        print(f'--sample {args.sample} --seed {args.seed}')
    report, todo = Report(args.results), queue.Queue()
    untried = [mutant for mutant in mutants if mutant.id not in report.verdicts]
    for mutant in untried:
        todo.put(mutant)
    end_all_on_signals()
    workers = [threading.Thread(target=work, args=(Tree(pathlib.Path(args.build).resolve() / str(n), report.say), todo, report))
               for n in range(min(args.jobs, len(untried)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    n_untried = sum(mutant.id not in report.verdicts for mutant in mutants)
    if n_untried or not mutants:
        print(f'run.py: {n_untried} of {len(mutants)} were not tried')
        return 1
    lines, good = report.table(mutants)
    print('\n'.join(['', *lines]))
    if args.write:
        write_table(lines)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
