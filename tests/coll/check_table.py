# SPDX-License-Identifier: BSD-3-Clause
"""check_table.py LOCAL_RUN PROGRAM: files for MOTET_COLL_TABLE are used, or refused with the file and the place in it."""
import json
import os
import subprocess
import sys
import tempfile

GOOD = {'version': 1, 'comment': 'every collective by messages', 'rules': {
    'barrier': [{'algorithm': 'dissemination'}],
    'bcast': [{'algorithm': 'pipeline', 'max_bytes': 64, 'shape': 'node'}, {'algorithm': 'binomial', 'min_ranks': 2, 'max_ranks': 3}],
    'allgather': [{'algorithm': 'recursive_doubling', 'shape': 'nodes'}, {'algorithm': 'bruck', 'shape': 'any'}],
    'scan': [{'algorithm': 'doubling'}]}}

# Text of the file, and what the message must say.
BAD = [
    ('{"version": 1, "rules": {}', ':1:'),
    ('[]', 'expected an object with "version": 1'),
    ('{"version": 2, "rules": {}}', 'expected an object with "version": 1'),
    ('{"version": 1, "rules": {}, "extra": 1}', 'the key extra is unknown'),
    ('{"version": 1, "rules": {"broadcast": []}}', 'rules.broadcast: there is no collective of this name'),
    ('{"version": 1, "rules": {"bcast": {}}}', 'rules.bcast: expected an array'),
    ('{"version": 1, "rules": {"bcast": [3]}}', 'rules.bcast[0]: this is no rule'),
    ('{"version": 1, "rules": {"bcast": [{"algorithm": "shared"}, {"algorithm": "magic"}]}}',
     'rules.bcast[1]: algorithm magic: expected binomial'),
    ('{"version": 1, "rules": {"scan": [{"max_bytes": 5}]}}', 'rules.scan[0]: this rule names nothing'),
    ('{"version": 1, "rules": {"scan": [{"algorithm": "doubling", "max_bytes": -1}]}}', 'rules.scan[0]: max_bytes'),
    ('{"version": 1, "rules": {"scan": [{"algorithm": "doubling", "min_ranks": "two"}]}}', 'rules.scan[0]: min_ranks'),
    ('{"version": 1, "rules": {"scan": [{"algorithm": "doubling", "shape": "ring"}]}}', 'rules.scan[0]: shape ring'),
    ('{"version": 1, "rules": {"scan": [{"algorithm": "doubling", "size": 1}]}}', 'rules.scan[0]: the key size'),
    ('{"version": 1, "rules": {"scan": [], "scan": []}}', 'duplicate'),
]


def run(words, file):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=dict(os.environ, MOTET_COLL_TABLE=file))
    return done.returncode, done.stdout + done.stderr


def main(local_run, program):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'table.json')
        with open(file, 'w', encoding='ascii') as out:
            json.dump(GOOD, out)
        code, text = run([local_run, '3', program, '50'], file)
        if code != 0:
            failures.append(f'a good table: exit code {code}\n{text}')
        for content, expected in BAD:
            with open(file, 'w', encoding='ascii') as out:
                out.write(content)
            code, text = run([local_run, '1', program, '1'], file)
            if code == 0 or expected not in text or file not in text:
                failures.append(f'{content}: exit code {code}, expected "{expected}" in\n{text}')
        code, text = run([local_run, '1', program, '1'], os.path.join(folder, 'none.json'))
        if code == 0 or 'none.json' not in text:
            failures.append(f'a missing file: exit code {code}\n{text}')
    print('\n'.join(failures))
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
