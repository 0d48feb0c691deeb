# SPDX-License-Identifier: BSD-3-Clause
"""What the launcher's tests share: where the built programs are, and that no process outlives its test."""
import os
import subprocess
import time

import pytest

BUILD = os.environ.get("MOTET_BUILD", "")


def program(path):
    full = os.path.join(BUILD, path)
    if not BUILD or not os.path.exists(full):
        pytest.skip(f"{path} is not built (MOTET_BUILD names the build directory)")
    return full


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, limit=5.0):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def mark():
    """A word for the environment of what a test starts; at the end no process with it may be left."""
    name = f"motet-test-{os.getpid()}-{time.monotonic_ns()}"
    yield name

    def left():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if name.encode() in f.read() and alive(pid):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    gone = wait_until(lambda: not left())
    for pid in left():
        subprocess.run(["kill", "-9", str(pid)], check=False)
    assert gone, "processes were left behind"
