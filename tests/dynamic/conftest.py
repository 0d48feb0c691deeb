# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on one node: with a daemon of their own, with one for all that is on no network, and with one that has a network."""
import os
import socket
import subprocess
import sys
import tempfile
import time

import pytest

BUILD = os.environ.get("MOTET_BUILD", "")
LIMIT_S = 50


def program(path):
    full = os.path.join(BUILD, path)
    if not BUILD or not os.path.exists(full):
        pytest.skip(f"{path} is not built (MOTET_BUILD names the build directory)")
    return full


def wait_until(condition, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def marked(mark):
    """Processes with this word in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark.encode() in f.read() and alive(pid):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def free_port():
    """A TCP port of the loopback interface that nobody listens on, as of now: tests run beside one another."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    """A place to run jobs in: `private`, `daemon` (on no network), `network` (a channel on the loopback interface)."""

    def __init__(self, kind):
        self.kind = kind
        self.mark = f"motet-test-{os.getpid()}-{time.monotonic_ns()}"
        self.daemon = None
        self.environment = {"PATH": os.environ["PATH"], "MARK": self.mark}
        self.running = []
        program("daemon/motetd"), program("daemon/spawner/motet-spawner")
        if kind == "private":
            return
        # The folder of the sockets: its path must be short.
        self.folder = tempfile.TemporaryDirectory(prefix="motet-")
        conf = os.path.join(self.folder.name, "motetd.conf")
        key = os.path.join(self.folder.name, "key")
        with open(key, "wb") as f:
            f.write(os.urandom(32).hex().encode())
        os.chmod(key, 0o600)
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"[node]\nname = here\nruntime_dir = {self.folder.name}\nlog_level = info\n")
            if kind == "network":
                f.write(f"key_file = {key}\n[channel a]\nnetwork = a\ninterface = lo\nprovider = tcp\nport = {free_port()}\n")
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8")
        self.daemon = subprocess.Popen([program("daemon/motetd"), "-c", conf], stderr=self.log, stdin=subprocess.DEVNULL,
                                       env={**self.environment, "MOTET_SPAWNER": program("daemon/spawner/motet-spawner")})
        self.environment["MOTET_CLIENT_SOCKET"] = os.path.join(self.folder.name, "client.sock")
        self.environment["MOTET_STATUS_SOCKET"] = os.path.join(self.folder.name, "status.sock")
        assert wait_until(lambda: os.path.exists(self.environment["MOTET_STATUS_SOCKET"]) or self.daemon.poll() is not None)
        assert self.daemon.poll() is None, self.said()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def start(self, *words, **more):
        environment = {**self.environment, **more.pop("env", {})}
        command = [program("launcher/mpiexec"), *(["-private"] if self.kind == "private" else []), *map(str, words)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment, **more)
        self.running.append(process)
        return process

    def run(self, *words, **more):
        """(exit code, standard output, what mpiexec and the ranks say)."""
        process = self.start(*words, **more)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"no end of {words}\n{out}{err}{self.said() if self.daemon else ''}")
        return process.returncode, out, err

    def motetctl(self, *words):
        return subprocess.run([program("launcher/motetctl"), *words], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env=self.environment)

    def ranks(self):
        return [pid for pid in marked(self.mark) if self.daemon is None or (pid != self.daemon.pid and parent_of(pid) != self.daemon.pid)]

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
        gone = wait_until(lambda: not self.ranks(), 10)
        if self.daemon:
            self.daemon.terminate()
            code = self.daemon.wait(timeout=LIMIT_S)
            said = self.said()
            self.log.close()
            self.folder.cleanup()
            assert code == 0, said
        gone = gone and wait_until(lambda: not marked(self.mark), 10)
        for pid in marked(self.mark):
            subprocess.run(["kill", "-9", str(pid)], check=False)
        assert gone, "processes were left behind"


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


@pytest.fixture(scope="module", params=["private", "daemon", "network"])
def node(request):
    place = Node(request.param)
    yield place
    place.close()


sys.dont_write_bytecode = True
