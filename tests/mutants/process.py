# SPDX-License-Identifier: BSD-3-Clause
"""Commands with a limit, of which nothing stays behind: not after their limit, and not when whoever runs them is interrupted or killed."""
import os
import shutil
import signal
import subprocess
import threading

# A mutated test may run for ever, so it must not outlive a runner that was killed outright. Tests' own children end with them.
DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'KILL'] if shutil.which('setpriv') else []
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_lock = threading.Lock()
_groups = set()  # process groups that run; each is a session of its own
_stopped = threading.Event()


def _kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, limit_s, **options):
    """Exit code and output of a command; the code is None when its time was over. Everything that it started is ended."""
    with _lock:
        if _stopped.is_set():
            raise RuntimeError('interrupted')
        process = subprocess.Popen(DIE_WITH_PARENT + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True, text=True, errors='replace', **options)
        _groups.add(process.pid)
    with process:
        try:
            output, _ = process.communicate(timeout=limit_s)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ''
        finally:
            with _lock:
                _kill(process.pid)
                _groups.discard(process.pid)


def _on_signal(number, _frame):
    # The handler may have interrupted a thread that holds the lock, so another one does the work.
    threading.Thread(target=_end, args=(128 + number,), daemon=True).start()


def _end(code):
    with _lock:
        _stopped.set()
        for group in _groups:
            _kill(group)
    os._exit(code)


def end_all_on_signals():
    """From now on a signal that asks this process to end ends first what it runs."""
    for number in SIGNALS:
        signal.signal(number, _on_signal)
