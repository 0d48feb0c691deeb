#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs mpi4py's own test suite, built from its source distribution against our mpi.h, on our library and on MPICH's, and compares.

    tests/suites/run_mpi4py.py                         everything: 1, 2, 3, 4, 5 and 8 ranks on one node, 4 over two nodes, 4 over
                                                       three networks with two gateways in a row
    tests/suites/run_mpi4py.py --places 4 three        some of it
    tests/suites/run_mpi4py.py --places 1 -- -i grequest    main.py's own options after --
    tests/suites/run_mpi4py.py --recorded --places three    without running MPICH: skips are compared with a list of its reasons

Works on the installation that MOTET_STAGE names (default build/stage); downloads lie in MOTET_INPUTS (default build/inputs). MPICH's
results are kept there, since they change only with its version; --again runs it anew. The exit code says whether any case failed, or
was skipped that MPICH does not skip. Every run has a deadline; what hangs is shown with its queues and ended.
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
import subprocess
import sys
import tarfile
import tempfile
import time

TESTS = os.path.realpath(os.path.join(os.path.dirname(__file__), '..'))
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True

from harness import inputs, lab, stage  # noqa: E402  pylint: disable=wrong-import-position

# What cannot run here. Names are module.class.case, as the suite prints them.
LEFT_OUT = {}
if not os.path.exists('/etc/hosts'):  # as on a machine that debootstrap made
    LEFT_OUT['the file /etc/hosts'] = ['test_toplevel.TestProfile.testProfile']
PATTERNS = [pattern for patterns in LEFT_OUT.values() for pattern in patterns]
# Why MPICH 5.0.2 skips cases in a job of several ranks: as this program finds it, kept for the runs that compare with the record only.
MPICH_SKIPS = {'cupy', 'numba', 'comm.size==1', 'mpi-comm_revoke', 'dill', 'yaml', 'mpi-world-size>1'}
DEADLINE_S = 1800  # 8 ranks on two cores that others use as well
WORST = ['passed', 'skipped', 'failed', 'error', 'no end']
Place = collections.namedtuple('Place', 'name n_ranks lab hosts')
PLACES = {place.name: place for place in [Place(str(n), n, None, None) for n in (1, 2, 3, 4, 5, 8)] + [
    Place('two', 4, 'one-network', ['n1', 'n2', 'n1', 'n2']), Place('three', 4, 'three-networks', ['a1', 'c1', 'a2', 'c2'])]}


# ---- the suite ----

def unpacked_suite():
    """The folder of the suite's main.py."""
    def unpack(path):
        with tarfile.open(inputs.mpi4py_source()) as archive:
            archive.extractall(path, [member for member in archive.getmembers() if '/test/' in member.name])

    (folder,) = glob.glob(os.path.join(inputs.once('mpi4py-suite', unpack), '*', 'test'))
    return folder


def command(python, output, options):
    # A whole module is left out before it is imported: some open a file when they are.
    exclude = []
    for pattern in PATTERNS:
        module = re.fullmatch(r'(\w+)[.][*]', pattern)
        exclude += ['-e', f'^{module[1]}[.]py$'] if module else ['-x', pattern]
    return [python, os.path.join(TESTS, 'suites', 'mpi4py_rank.py'), unpacked_suite(), output, *exclude, *options]


def left_out(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in PATTERNS)


def read_cases(output, n_ranks):
    """name -> (outcome, reason of a skip): the worst of all ranks. A case that began and did not end is `no end`. Cases left out are
    not counted, though main.py lists those that disable themselves."""
    cases = {}
    for rank in range(n_ranks):
        try:
            with open(os.path.join(output, f'rank.{rank}.cases'), encoding='utf-8') as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            lines = []
        own = {}
        for line in lines:
            outcome, name, *reason = line.split(' ', 2)
            if left_out(name):
                continue
            if outcome == 'begin':
                own[name] = ('no end', f'rank {rank}')
            elif own.get(name, ('no end',))[0] == 'no end' or WORST.index(outcome) > WORST.index(own[name][0]):
                own[name] = (outcome, ''.join(reason))
        if not own:
            own['the suite itself'] = ('no end', f'rank {rank} wrote nothing')
        for name, case in own.items():
            if WORST.index(case[0]) >= WORST.index(cases.get(name, ('passed',))[0]):
                cases[name] = case
    return cases


def watched(argv, deadline_s, on_hang, **options):
    """Runs a command to its end or the deadline. Returns (seconds, what to say of its end or None)."""
    start = time.monotonic()
    with open(os.path.join(options.pop('output'), 'mpiexec.out'), 'w+', encoding='utf-8', errors='replace') as file:
        with subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                              start_new_session=True, **options) as process:
            try:
                code = process.wait(timeout=deadline_s)
                end = None if code == 0 else f'exit code {code}'
            except subprocess.TimeoutExpired:
                end = f'no end after {deadline_s:g} s\n{on_hang()}'
            finally:
                stage.kill_group(process)
        file.seek(0)
        said = file.read().strip()
    return time.monotonic() - start, f'{end}\n{said[-4000:]}'.strip() if end else None


# ---- the two libraries ----

def run_ours(installation, place, python, output, options, deadline_s):
    words = [installation.mpiexec, '-n', place.n_ranks]
    if place.lab is None:
        def look():
            return stage.run([installation.motetctl, 'queues'], 20, check=False).stdout
        return watched([*words, '-private', *command(python, output, options)], deadline_s, look, output=output)
    cluster = lab.Lab(installation, place.lab, os.path.join(output, 'logs'))
    try:
        def look_in_lab():
            return cluster.on(place.hosts[0], 'motetctl', 'queues', check=False).stdout
        return watched(cluster.on_words(place.hosts[0], [*words, '-hosts', ','.join(place.hosts), *command(python, output, options)]),
                       deadline_s, look_in_lab, output=output)
    finally:
        cluster.down()


def run_mpich(mpich, n_ranks, python, output, options, deadline_s):
    return watched([mpich.mpiexec, '-n', n_ranks, *command(python, output, options)], deadline_s, lambda: '', output=output,
                   env=mpich.environment)


def mpich_cases(mpich, n_ranks, python, options, deadline_s, again):
    """(cases, seconds) of MPICH's library; from an earlier run if there is one that came to its end."""
    name = re.sub(r'\W+', '-', '-'.join([inputs.MPICH, inputs.MPI4PY, str(n_ranks), *options]))
    path = os.path.join(inputs.folder(), f'cases-{name}.json')
    if os.path.exists(path) and not again:
        with open(path, encoding='utf-8') as file:
            kept = json.load(file)
        return {name: tuple(case) for name, case in kept['cases'].items() if not left_out(name)}, kept['seconds']
    with tempfile.TemporaryDirectory(prefix='motet-suite-') as output:
        seconds, trouble = run_mpich(mpich, n_ranks, python, output, options, deadline_s)
        cases = read_cases(output, n_ranks)
    if trouble and 'no end' in trouble:
        print(f'MPICH with {n_ranks} ranks: {trouble}', flush=True)
    else:
        with open(path, 'w', encoding='utf-8') as file:
            json.dump({'cases': cases, 'seconds': seconds}, file, indent=1)
    return cases, seconds


# ---- comparison ----

def counts(cases):
    outcomes = collections.Counter(outcome for outcome, _ in cases.values())
    return [len(cases)] + [outcomes[outcome] for outcome in ('passed', 'failed', 'error', 'no end', 'skipped')]


def row(name, words):
    return f'{name:<34}' + ''.join(f'{word:>9}' for word in words)


def differences(ours, theirs):
    """(lines, verdict): each case whose outcome differs; the verdict is false if one of ours is worse."""
    lines, good = [], True
    for name in sorted(set(ours) | set(theirs)):
        our, their = ours.get(name, ('missing', '')), theirs.get(name, ('missing', ''))
        if our[0] != their[0]:
            lines.append(f'    {name}: {" ".join(our)}; MPICH: {" ".join(their)}')
        if our[0] not in ('passed', their[0]) or our[0] in ('failed', 'error', 'no end'):
            good = False
    return lines, good


def against_record(ours):
    """The same without MPICH's results."""
    lines = [f'    {name}: {" ".join(case)}' for name, case in sorted(ours.items())
             if case[0] not in ('passed', 'skipped') or (case[0] == 'skipped' and case[1] not in MPICH_SKIPS)]
    return lines, not lines


def failures(output, n_ranks, limit=6000):
    """The reports of what failed, rank by rank."""
    text = ''
    for rank in range(n_ranks):
        try:
            with open(os.path.join(output, f'rank.{rank}.out'), encoding='utf-8', errors='replace') as file:
                said = file.read()
        except FileNotFoundError:
            continue
        start = said.find('\n====')
        if start >= 0:
            text += f'  --- rank {rank}{said[start:start + limit]}\n'
            break
    return text


def run_place(place, tools, arguments):
    """Runs one place on both libraries, prints the rows. Returns the verdict."""
    installation, python, mpich = tools
    output = tempfile.mkdtemp(prefix='motet-suite-')
    try:
        seconds, trouble = run_ours(installation, place, python, output, arguments.options, arguments.deadline)
        ours = read_cases(output, place.n_ranks)
        where = f'{place.n_ranks} ranks' + (f' over {place.lab}' if place.lab else ' on one node')
        print(row(f'{where}: Motet', counts(ours) + [f'{seconds:.0f} s']), flush=True)
        if mpich:
            theirs, seconds = mpich_cases(mpich, place.n_ranks, python, arguments.options, arguments.deadline, arguments.again)
            print(row(f'{place.n_ranks} ranks on one node: MPICH', counts(theirs) + [f'{seconds:.0f} s']), flush=True)
            # A run of MPICH's that did not come to its end tells nothing of the cases after it.
            ended = not any(outcome == 'no end' for outcome, _ in theirs.values())
            lines, good = differences(ours, theirs) if ended else against_record(ours)
        else:
            lines, good = against_record(ours)
        print('\n'.join(lines), end='\n' if lines else '', flush=True)
        if not good or trouble:
            print(failures(output, place.n_ranks), end='')
            print(f'  --- mpiexec: {trouble}' if trouble else '', flush=True)
            if arguments.keep:
                kept = os.path.join(arguments.keep, place.name)
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(output, kept)
        return good and not trouble
    finally:
        shutil.rmtree(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--places', nargs='+', choices=PLACES, default=list(PLACES),
                        help='ranks on one node; two (nodes); three (networks)')
    parser.add_argument('--deadline', type=float, default=DEADLINE_S, help='seconds for each run (default: %(default)s)')
    parser.add_argument('--again', action='store_true', help="run MPICH even if its results are known")
    parser.add_argument('--recorded', action='store_true', help='compare with what MPICH is known to skip instead of running it')
    parser.add_argument('--keep', metavar='DIR', help='keep the output of runs with failures')
    parser.add_argument('options', nargs='*', help="of the suite's main.py, after --")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # by way of every `finally`
    installation = stage.find()
    tools = installation, inputs.mpi4py(installation), None if arguments.recorded else inputs.Mpich()
    print('left out, because they need what is not there:')
    for chapter, patterns in LEFT_OUT.items():
        print(f'    {chapter}: {" ".join(patterns)}')
    print(row('', ['cases', 'passed', 'failed', 'errors', 'no end', 'skipped', 'time']), flush=True)
    good = [run_place(PLACES[name], tools, arguments) for name in arguments.places]
    print('the same as MPICH, and no failure' if all(good) else f'{good.count(False)} of {len(good)} runs differ', flush=True)
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
