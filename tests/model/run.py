#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the spin models: good variants must be searched to the end without an error, known-bad ones must give a counterexample.

usage: run.py [model ...]            (default: all)
       run.py --trail model,DEFINE   prints the counterexample of one variant
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY_MIB = 3000
DEPTH = 6000000
LIMIT_S = 600

# model: (good variants, bad variants). A variant is a list of defines.
MODELS = {
    'ring': (
        ['', 'HOSTILE', 'HOSTILE WRAP=8'],
        ['BAD_TURN_FIRST', 'BAD_TURN_PLAIN', 'BAD_HEAD_FIRST', 'BAD_NO_LAP', 'BAD_NO_IDLE_RELEASE', 'BAD_NO_PADDING',
         'BAD_DATA_END', 'BAD_IGNORE_DATA_HEAD', 'HOSTILE BAD_NO_PADDING'],
    ),
    'bell': (
        ['', 'TSO', 'FENCED', 'EVENTFD'],
        ['BAD_NO_BARRIER', 'TSO BAD_NO_BARRIER', 'FENCED BAD_PLAIN_PUBLISH', 'FENCED BAD_PLAIN_SLEEPING',
         'BAD_CLEAR_AFTER_SCAN', 'BAD_CHECK_THEN_SLEEP', 'BAD_NO_QUIET_LOOK', 'BAD_LOOK_FIRST', 'BAD_BIT_LATE',
         'BAD_WAKE_FIRST', 'WAKER_DIES', 'EVENTFD WAKER_DIES'],
    ),
    'credit': (
        ['', 'LAST_FIRST', 'PIGGYBACK MESSAGES=3 ALLOWANCE=2'],
        ['BAD_OWED_TWICE', 'BAD_OWED_AT_ARRIVAL', 'BAD_DROPPED_WHEN_FULL', 'BAD_UNCHARGED_ANNOUNCEMENT',
         'LAST_FIRST BAD_WAIT_FOR_ALLOWANCE', 'BAD_NO_PROGRESS_WHEN_FULL'],
    ),
    'cells': (
        ['', 'TSO', 'ROOTED', 'REUSE'],
        ['BAD_STEP_FIRST', 'BAD_STEP_RELAXED', 'BAD_ANY_STEP', 'BAD_CONTENTS_FIRST', 'ROOTED BAD_NO_ROOM', 'ROOTED BAD_OWN_DONE',
         'ROOTED BAD_DONE_FIRST', 'REUSE BAD_NO_DRAIN'],
    ),
}


def run(cmd, cwd, limit_s):
    return subprocess.run(cmd, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_s).stdout


def search(model, variant, work):
    """Returns (verdict, detail): 'clean', 'error' or 'unfinished'."""
    defines = ['-D' + d for d in variant.split()]
    out = run(['spin'] + defines + ['-a', os.path.join(HERE, model + '.pml')], work, LIMIT_S)
    if not os.path.exists(os.path.join(work, 'pan.c')):
        return 'unfinished', out.strip()
    # SAFETY: assertions and invalid end states; COLLAPSE: less memory for the same exhaustive search.
    out = run(['gcc', '-O2', '-w', '-DSAFETY', '-DCOLLAPSE', '-DVECTORSZ=2048', '-DMEMLIM=%d' % MEMORY_MIB,
               '-o', 'pan', 'pan.c'], work, LIMIT_S)
    if out:
        return 'unfinished', out.strip()
    out = run(['./pan', '-m%d' % DEPTH], work, LIMIT_S)
    found = re.search(r'errors: (\d+)', out)
    states = re.search(r'(\d+) states, stored', out)
    why = re.search(r'pan:\d+: (.*?) \(at', out)
    detail = '%s states' % (states.group(1) if states else '?')
    if found and int(found.group(1)) > 0:
        return 'error', '%s, %s' % (why.group(1) if why else 'error', detail)
    if not found or 'max search depth too small' in out or 'out of memory' in out or 'Search not completed' in out:
        return 'unfinished', detail
    return 'clean', detail


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('models', nargs='*', metavar='model')
    parser.add_argument('--trail', metavar='MODEL,DEFINE...', help='print the counterexample of one variant')
    args = parser.parse_args()
    if shutil.which('spin') is None or shutil.which('gcc') is None:
        print('spin or gcc is missing (Debian: apt-get install spin gcc)')
        return 77
    if args.trail:
        model, *defines = args.trail.split(',')
        with tempfile.TemporaryDirectory(prefix='motet-model-') as work:
            print(search(model, ' '.join(defines), work))
            shutil.copy(os.path.join(HERE, 'memory.pml'), work)
            print(run(['spin'] + ['-D' + d for d in defines] + ['-t', '-p', '-g', '-k', model + '.pml.trail',
                       os.path.join(HERE, model + '.pml')], work, LIMIT_S))
        return 0
    n_wrong = 0
    for model in args.models or MODELS:
        good, bad = MODELS[model]
        for variant, wanted in [(v, 'clean') for v in good] + [(v, 'error') for v in bad]:
            begin = time.monotonic()
            with tempfile.TemporaryDirectory(prefix='motet-model-') as work:
                try:
                    verdict, detail = search(model, variant, work)
                except subprocess.TimeoutExpired:
                    verdict, detail = 'unfinished', 'more than %d s' % LIMIT_S
            right = verdict == wanted
            n_wrong += not right
            print('%-5s %-32s wanted %-5s got %-10s %s (%.1f s)' % (
                'ok' if right else 'WRONG', (model + ' ' + variant).strip(), wanted, verdict, detail,
                time.monotonic() - begin), flush=True)
    print('%s' % ('all as wanted' if n_wrong == 0 else '%d variants are not as wanted' % n_wrong))
    return 1 if n_wrong else 0


if __name__ == '__main__':
    sys.exit(main())
