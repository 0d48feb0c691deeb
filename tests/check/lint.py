#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the linters over the tree: clang-format and clang-tidy over C, ruff over Python. Their lists of findings are empty.

usage: tests/check/lint.py [--only NAME ...] [--deep] [--within FOLDER ...] [--fix] [--build DIR] [--results FILE] [--all] [--jobs N]

clang-tidy needs a build folder (default build) for the compiler's flags and the generated headers. A linter that is not there is
skipped, with the name of the package; with --all that is a failure. --deep lets clang's static analyser read too, which takes a quarter of
an hour, or less with --within, for the C files of some folders alone; what it finds and is no bug stands in analyser.txt. --results: a
line of JSON for each, for tests/sum.py.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODE = ('base', 'proto', 'client', 'daemon', 'launcher')  # what clang-tidy reads; tests are C too, but break rules on purpose
# Left out: functions with _s are in no C library of ours; the order of fields follows the threads that write them.
# What only clang's static analyser finds, in functions whose buffers are measured before (strcpy), or by mistake (va_list).
DEEP = ('--checks=clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,'
        '-clang-analyzer-security.insecureAPI.strcpy,-clang-analyzer-valist.Uninitialized,-clang-analyzer-optin.performance.Padding')
UNFOUNDED = pathlib.Path(__file__).resolve().parent / 'analyser.txt'
FINDING = re.compile(r'^\S+:\d+:\d+: (?:error|warning): .*\[([\w.-]+)')
GCC_ONLY = re.compile(r"\s'?(-mtune-ctrl=\S+|-flto=auto|-ffat-lto-objects)")
FORMAT, TIDY = 'clang-format-14', 'clang-tidy-14'  # another version lays out differently


def files(*patterns):
    out = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', *patterns], cwd=ROOT, capture_output=True,
                         check=True).stdout.decode()
    return [name for name in out.split('\0') if name and (ROOT / name).is_file()]


def run(command):
    """(exit code, output) of a command in the root of the tree."""
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')
    return done.returncode, done.stdout + done.stderr


def clang_format(args):
    mode = ['-i'] if args.fix else ['--dry-run', '-Werror']
    return run([FORMAT, *mode, *files('*.c', '*.h')])


def ruff(args):
    return run(['ruff', 'check', '--no-cache', '--output-format', 'concise', *(['--fix'] if args.fix else []), '.'])


def compiled(build, within):
    """The product's C files in these folders that the build folder has a command for."""
    with open(build / 'compile_commands.json', encoding='utf-8') as file:
        known = {os.path.realpath(os.path.join(entry['directory'], entry['file'])) for entry in json.load(file)}
    return [name for name in files(*(f'{folder}/**.c' for folder in within)) if str(ROOT / name) in known]


def write_commands(build, folder):
    """The build folder's commands, without what only gcc understands."""
    with open(build / 'compile_commands.json', encoding='utf-8') as file:
        entries = json.load(file)
    for entry in entries:
        entry['command'] = GCC_ONLY.sub('', entry['command'])
    with open(os.path.join(folder, 'compile_commands.json'), 'w', encoding='utf-8') as file:
        json.dump(entries, file)


def unfounded():
    """(file, check) of the analyser's findings that are none; the file says why."""
    lines = [line.split(maxsplit=2) for line in UNFOUNDED.read_text(encoding='utf-8').splitlines() if line and not line.startswith('#')]
    return {(words[0], words[1]) for words in lines}


def findings(name, output, known):
    """What clang-tidy says of a file without what is known. Adds to `known` what it has met: (file, check) -> True."""
    kept, keep = [], True
    for line in output.splitlines():
        found = FINDING.match(line)
        if found:
            key = (name, found[1])
            keep = key not in known
            if not keep:
                known[key] = True
        if keep and not line.endswith(' generated.'):  # of what was suppressed in the system's headers
            kept.append(line)
    return [f'-- {name}', *kept] if any(map(FINDING.match, kept)) else []


def clang_tidy(args):
    build = pathlib.Path(args.build).resolve()
    if not (build / 'compile_commands.json').is_file():
        return 1, f'{build} is no build folder: meson setup build && ninja -C build'
    names = compiled(build, args.within)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        write_commands(build, folder)
        outcomes = list(pool.map(lambda name: run([TIDY, '-p', folder, '--quiet', *([DEEP] if args.deep else []), name]), names))
    known = dict.fromkeys(unfounded(), False) if args.deep else {}
    lines = [line for name, (code, output) in zip(names, outcomes) if code for line in findings(name, output, known) or
             ([] if args.deep and any(map(FINDING.match, output.splitlines())) else [f'-- {name}', output])]
    lines += [f'{UNFOUNDED.name}: {name} has no {check} any more' for (name, check), met in known.items() if not met and name in names]
    return int(bool(lines) or not names), '\n'.join(lines or [f'{len(names)} files'])


LINTERS = {
    'clang-format': (clang_format, FORMAT, f'apt-get install {FORMAT}'),
    'ruff': (ruff, 'ruff', 'pip install ruff'),
    'clang-tidy': (clang_tidy, TIDY, f'apt-get install {TIDY}'),
}


def main():
    parser = argparse.ArgumentParser(description='Runs the linters over the tree.')
    parser.add_argument('--only', nargs='+', choices=LINTERS, default=list(LINTERS))
    parser.add_argument('--deep', action='store_true', help="clang-tidy with clang's static analyser")
    parser.add_argument('--within', nargs='+', default=CODE, metavar='FOLDER', help='what clang-tidy reads')
    parser.add_argument('--fix', action='store_true', help='let clang-format and ruff change the files')
    parser.add_argument('--build', default=str(ROOT / 'build'), metavar='DIR')
    parser.add_argument('--results', metavar='FILE')
    parser.add_argument('--all', action='store_true', help='a linter that is not there is a failure')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), metavar='N')
    args = parser.parse_args()
    results = []
    for name in args.only:
        function, program, remedy = LINTERS[name]
        if shutil.which(program):
            code, output = function(args)
            results.append((name, 'FAIL' if code else 'OK'))
            print(f'{name}: {"findings" if code else "nothing"}', *([output.rstrip()] if code else []), sep='\n', flush=True)
        else:
            results.append((name, 'FAIL' if args.all else 'SKIP'))
            print(f'{name}: {program} is not there ({remedy})', flush=True)
    if args.results:
        with open(args.results, 'w', encoding='utf-8') as file:
            for name, result in results:
                file.write(json.dumps({'name': f'lint {name}', 'result': result}) + '\n')
    return 1 if any(result == 'FAIL' for _, result in results) else 0


if __name__ == '__main__':
    sys.exit(main())
