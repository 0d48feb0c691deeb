#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the demonstration programs of mpi4py's source distribution, unchanged, each with the ranks and arguments of its makefile.

    tests/suites/run_mpi4py_demo.py                    on one node
    tests/suites/run_mpi4py_demo.py --place three      over three networks with two gateways in a row (two: over two nodes)
    tests/suites/run_mpi4py_demo.py --place mpich --only 'futures/*'

Left out: what needs a chapter that comes later (one-sided, dynamic processes), a compiler for another language or a graphics card. A
program is good when it ends with exit code 0. Works on the installation that MOTET_STAGE names (default build/stage); downloads lie in
MOTET_INPUTS (default build/inputs). Every run has a deadline; what passes it is shown with its queues and ended.
"""
import argparse
import collections
import fnmatch
import glob
import os
import shutil
import signal
import sys
import tarfile
import tempfile

TESTS = os.path.realpath(os.path.join(os.path.dirname(__file__), '..'))
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True

from harness import inputs, places, stage  # noqa: E402  pylint: disable=wrong-import-position

DEADLINE_S = 600  # ten thousand collectives of each size take their time over networks
LONGEST_OUTPUT = 3000
INIT = ['threads=true', 'threads=false', 'thread_level=single', 'thread_level=funneled', 'thread_level=serialized', 'thread_level=multiple',
        'fast_reduce=true', 'fast_reduce=false', 'recv_mprobe=true', 'recv_mprobe=false', 'irecv_bufsz=0', 'irecv_bufsz=1',
        'irecv_bufsz=1024', 'errors=default', 'errors=exception', 'errors=abort', 'errors=fatal']
# Folder, numbers of ranks, and the commands' words; a pattern stands for all programs that it matches.
DEMOS = [
    ('.', [5], ['helloworld.py']),
    ('compute-pi', [3], ['cpi-cco.py']),
    ('mpi-ref-v1', [2, 5], ['ex-*.py']),
    ('init-fini', [2], [f'test_0.py {option}' for option in INIT] + ['test_[1-9m]*.py']),
    ('nxtval', [5], ['nxtval-threads.py']),
    ('reductions', [5], ['test_reductions.py -q']),
    ('sequential', [5], ['test_seq.py']),
    ('threads', [1], ['sendrecv.py']),
    ('profiling', [8], ['cpi.py', 'ring.py', 'threads.py']),
    ('mandelbrot', [5], ['mandelbrot.py']),
    ('mandelbrot', [1], ['mandelbrot-seq.py']),
    ('futures', [5], ['run_julia.py', 'run_mandelbrot.py'] +
     [f'-m mpi4py.futures run_{name}.py' for name in ('cpi', 'hello', 'primes', 'julia', 'mandelbrot')]),
    ('futures', [2, 5], ['-m mpi4py.futures test_futures.py']),
    ('.', [4], [f'osu_{name}.py' for name in ('allgather', 'alltoall', 'alltoallv', 'barrier', 'bcast', 'gather', 'scatter')]),
    ('.', [2], [f'osu_{name}.py' for name in ('bibw', 'bw', 'latency', 'multi_lat')]),
]


def unpacked():
    """The folder that has demo/, and test/ with a module that some of the demos import."""
    def unpack(path):
        with tarfile.open(inputs.mpi4py_source()) as archive:
            archive.extractall(path, [member for member in archive.getmembers() if '/demo/' in member.name or '/test/' in member.name])

    (folder,) = glob.glob(os.path.join(inputs.once('mpi4py-demo', unpack), 'mpi4py-*'))
    return folder


def runs(source):
    """(name, folder, ranks, words) of each run."""
    for folder, ranks, commands in DEMOS:
        path = os.path.join(source, 'demo', folder)
        for command in commands:
            found = sorted(os.path.basename(name) for name in glob.glob(os.path.join(path, command))) or [command]
            for words in found:
                for n_ranks in ranks:
                    yield os.path.normpath(os.path.join(folder, words)), path, n_ranks, words.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--only', nargs='+', metavar='PATTERN', default=['*'], help='programs with their folder')
    parser.add_argument('--place', choices=['node', *places.LABS, 'mpich'], default='node',
                        help='one node, two nodes, three networks, or MPICH')
    parser.add_argument('--patience', type=float, default=1.0, help='factor on the deadline')
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # by way of every `finally`
    installation = stage.find()
    python, source = inputs.mpi4py(installation), unpacked()
    logs = tempfile.mkdtemp(prefix='motet-suite-')
    counts = collections.Counter()
    try:
        place = places.make(arguments.place, installation, logs)
        environment = dict(place.environment, PYTHONPATH=f'.:{os.path.join(source, "test")}', PYTHONDONTWRITEBYTECODE='1')
        try:
            for name, folder, n_ranks, words in runs(source):
                if not any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.only):
                    continue
                limit_s = DEADLINE_S * arguments.patience
                seconds, code, output = places.run(place, [*place.words(n_ranks), python, *words], limit_s, cwd=folder, env=environment)
                wrong = f'no end after {limit_s:g} s' if code is None else f'exit code {code}' if code else None
                counts['bad' if wrong else 'good'] += 1
                print(f'{name:<50}{n_ranks:>3} ranks{seconds:>8.1f} s  {wrong or "good"}', flush=True)
                if wrong:
                    print(''.join(f'    | {line}\n' for line in output.strip()[-LONGEST_OUTPUT:].splitlines()), end='', flush=True)
        finally:
            place.close()
    finally:
        shutil.rmtree(logs)
    print(f'{sum(counts.values())} runs: {counts["good"]} good, {counts["bad"]} bad', flush=True)
    return 1 if counts['bad'] or not counts['good'] else 0


if __name__ == '__main__':
    sys.exit(main())
