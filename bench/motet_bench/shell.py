# SPDX-License-Identifier: BSD-3-Clause
"""Running commands with a deadline. A command's whole process group ends with it."""
import os
import signal
import subprocess
import time


class Failed(Exception):
    pass


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def run(words, timeout_s=120.0, env=None, cwd=None):
    """Returns (stdout, seconds). Raises Failed with what the command wrote."""
    words = [str(word) for word in words]
    begin = time.monotonic()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors='replace', env=dict(os.environ, **(env or {})), cwd=cwd, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
            taken = time.monotonic() - begin
        except subprocess.TimeoutExpired:
            kill_group(process)
            out, err = process.communicate()
            raise Failed(f'no end after {timeout_s:g} s: {" ".join(words)}\n{out[-2000:]}{err[-2000:]}') from None
        finally:
            kill_group(process)
    if process.returncode != 0:
        raise Failed(f'exit code {process.returncode}: {" ".join(words)}\n{out[-2000:]}{err[-2000:]}')
    return out, taken


def start(words, env=None):
    """Starts a command in the background; the caller ends it with `stop`."""
    return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, errors='replace', env=dict(os.environ, **(env or {})),
                            start_new_session=True)


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
    kill_group(process)
    process.communicate()


def results(text):
    """The RESULT lines of a program: {(name, size): (value, unit)}."""
    return {key: (value, unit) for key, (value, unit, _) in results_with_line(text).items()}


def results_with_line(text):
    """The same with the raw hand-over of a cache line beside each, in ns: {(name, size): (value, unit, line)}; None where there is none."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == 'RESULT':
            line_ns = float(words[5]) if len(words) > 5 else 0.0
            found[words[1], int(words[2])] = (float(words[3]), words[4] if len(words) > 4 else '', line_ns or None)
    return found
