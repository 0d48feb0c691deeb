#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What run.py has started ends with it, however it ends."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
DEADLINE_S = 60
# Writes its number where the first argument says, and would then run for a day.
SLEEPER = 'import os, sys, time; print(os.getpid(), file=open(sys.argv[1], "w"), flush=True); time.sleep(86400)'
RUNNER = f'''
import process, sys
process.end_all_on_signals()
process.run([sys.executable, '-c', {SLEEPER!r}, sys.argv[1]], 86400)
'''


def is_gone(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rpartition(')')[2].split()[0] in 'ZX'
    except FileNotFoundError:
        return True


class Process(unittest.TestCase):
    def check(self, number):
        where = pathlib.Path(os.environ.get('TMPDIR', '/tmp')) / f'mutants-process-{os.getpid()}-{number}'
        self.addCleanup(where.unlink, missing_ok=True)
        runner = subprocess.Popen([sys.executable, '-c', RUNNER, str(where)], env=dict(os.environ, PYTHONPATH=str(HERE)))
        self.addCleanup(runner.wait)
        self.addCleanup(runner.kill)
        until = time.monotonic() + DEADLINE_S
        while not (where.exists() and where.read_text(encoding='ascii').strip()):
            self.assertIsNone(runner.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        pid = int(where.read_text(encoding='ascii'))
        self.assertFalse(is_gone(pid))
        runner.send_signal(number)
        runner.wait(DEADLINE_S)
        while not is_gone(pid):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def test_interrupted(self):
        self.check(signal.SIGINT)

    def test_asked_to_end(self):
        self.check(signal.SIGTERM)

    def test_killed(self):
        self.check(signal.SIGKILL)

    def test_limit(self):
        sys.path.insert(0, str(HERE))
        import process
        self.assertEqual(process.run(['sleep', '1000'], 0.1), (None, ''))
        self.assertEqual(process.run(['sh', '-c', 'echo said; exit 3'], DEADLINE_S), (3, 'said\n'))


if __name__ == '__main__':
    unittest.main()
