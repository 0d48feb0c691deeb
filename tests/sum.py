#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up the results of all test runners. Prints what failed and, as the last line, the count; its exit code is the verdict.

usage: sum.py FOLDER FILE...   FILE: meson's testlog.json (a JSON object a line) or a JUnit XML file, in FOLDER. A file that should be
there and is not counts as a failure, as does each line of FOLDER/broken (a runner that did not come to its end).
"""
import json
import os
import sys
import xml.etree.ElementTree

MESON_PASSED = {'OK', 'EXPECTEDFAIL'}


def read_meson(path):
    """Yields (name, 'passed' | 'failed' | 'skipped')."""
    with open(path, encoding='utf-8') as file:
        for line in file:
            test = json.loads(line)
            result = 'skipped' if test['result'] == 'SKIP' else 'passed' if test['result'] in MESON_PASSED else 'failed'
            yield test['name'], result


def read_junit(path):
    for case in xml.etree.ElementTree.parse(path).iter('testcase'):
        tags = {child.tag for child in case}
        result = 'failed' if tags & {'failure', 'error'} else 'skipped' if 'skipped' in tags else 'passed'
        yield f'{case.get("classname")}::{case.get("name")}', result


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    for name in names:
        try:
            results = list((read_meson if name.endswith('.json') else read_junit)(os.path.join(folder, name)))
        except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
            results = [(f'{name}: no results ({error})', 'failed')]
        if not results:
            results = [(f'{name}: no test ran', 'failed')]
        for test, result in results:
            counts[result] += 1
            if result == 'failed':
                print(f'failed: {test}')
    try:
        with open(os.path.join(folder, 'broken'), encoding='utf-8') as file:
            for line in file:
                counts['failed'] += 1
                print(f'failed: {line.strip()}')
    except FileNotFoundError:
        pass
    skipped = f', {counts["skipped"]} skipped' if counts['skipped'] else ''
    print(f'{counts["passed"]} passed, {counts["failed"]} failed{skipped}')
    return 1 if counts['failed'] or not counts['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
