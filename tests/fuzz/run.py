#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the fuzzers with clang and runs each for a while, starting from the committed corpus.

usage: run.py [--seconds N] [--build DIR] [--keep DIR] [NAME ...]

What makes a fuzzer crash is left in the keep directory (default: fuzz-findings in the working directory); copy it to
tests/fuzz/corpus/NAME/ together with the fix, so that every build replays it.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def names():
    with open(os.path.join(HERE, 'meson.build')) as f:
        return re.findall(r"^\s*\['(\w+)', \w+\],", f.read(), re.M)


def build(build_dir, wanted):
    env = dict(os.environ, CC='clang')
    if not os.path.exists(os.path.join(build_dir, 'build.ninja')):
        subprocess.run(['meson', 'setup', build_dir, ROOT, '-Dbuildtype=debugoptimized', '-Db_sanitize=address,undefined',
                        '-Db_lundef=false', '-Dc_args=-fsanitize=fuzzer-no-link'], env=env, check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', build_dir] + ['tests/fuzz/fuzz_' + n for n in wanted], env=env, check=True,
                   stdout=subprocess.DEVNULL)


def fuzz(build_dir, name, seconds, keep):
    """Runs one fuzzer; True if it found nothing."""
    program = os.path.join(build_dir, 'tests', 'fuzz', 'fuzz_' + name)
    seeds = os.path.join(HERE, 'corpus', name)
    with tempfile.TemporaryDirectory(prefix='motet-fuzz-') as work:
        grown = os.path.join(work, 'grown')
        os.mkdir(grown)
        findings = os.path.join(keep, name)
        os.makedirs(findings, exist_ok=True)
        cmd = [program, '-max_total_time=%d' % seconds, '-timeout=20', '-rss_limit_mb=2048', '-print_final_stats=1',
               '-artifact_prefix=' + findings + '/', grown] + ([seeds] if os.path.isdir(seeds) else [])
        env = dict(os.environ, UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1', ASAN_OPTIONS='detect_leaks=1')
        try:
            run = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + 120, env=env)
        except subprocess.TimeoutExpired:
            print('%-20s did not end' % name)
            return False
        text = run.stdout.decode(errors='replace')
        n_runs = re.search(r'number_of_executed_units: (\d+)', text)
        cover = re.findall(r'cov: (\d+)', text)
        print('%-20s %s, %s inputs, %s edges' % (name, 'ok' if run.returncode == 0 else 'FOUND SOMETHING',
                                                 n_runs.group(1) if n_runs else '?', cover[-1] if cover else '?'), flush=True)
        if run.returncode != 0:
            print(text[-6000:])
            print('input: %s' % ', '.join(os.path.join(findings, f) for f in os.listdir(findings)))
        elif not os.listdir(findings):
            os.rmdir(findings)
        return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=int, default=30, help='for each fuzzer (default 30)')
    parser.add_argument('--build', help='build directory to use and leave (default: a temporary one)')
    parser.add_argument('--keep', default='fuzz-findings', help='where inputs that crash are left')
    parser.add_argument('name', nargs='*', help='fuzzers to run (default: all)')
    args = parser.parse_args()
    if shutil.which('clang') is None:
        print('clang is missing (Debian: apt-get install clang)')
        return 77
    wanted = args.name or names()
    unknown = set(wanted) - set(names())
    if unknown:
        print('no such fuzzer: %s; there are: %s' % (', '.join(sorted(unknown)), ', '.join(names())))
        return 2
    build_dir = args.build or tempfile.mkdtemp(prefix='motet-fuzz-build-')
    try:
        build(build_dir, wanted)
        bad = [n for n in wanted if not fuzz(build_dir, n, args.seconds, args.keep)]
    finally:
        if not args.build:
            shutil.rmtree(build_dir, ignore_errors=True)
        if os.path.isdir(args.keep) and not os.listdir(args.keep):
            os.rmdir(args.keep)
    print('nothing found' if not bad else 'found something in: ' + ', '.join(bad))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
