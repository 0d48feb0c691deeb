# SPDX-License-Identifier: BSD-3-Clause
"""The spawner alone: this test plays the daemon at the other end of its descriptor 3."""
import os
import signal
import socket
import subprocess
import threading

import pytest
from conftest import alive, program, wait_until

from protocol import HEADER, Peer

JOB = 0x1234


class Spawner:
    def __init__(self, mark):
        ours, theirs = socket.socketpair()
        script = 'exec 3<&"$1"; exec "$2"'
        self.process = subprocess.Popen(["bash", "-c", script, "bash", str(theirs.fileno()), program("daemon/spawner/motet-spawner")],
                                        pass_fds=[theirs.fileno()], env={"PATH": os.environ["PATH"]})
        theirs.close()
        self.peer = Peer(ours)
        self.mark = mark

    def spawn(self, argv, rank=0, job=JOB, env=(), wdir="/", **more):
        """Starts a rank whose three streams are pipes; returns them and the answer."""
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        fields = {"uid": os.getuid(), "gid": os.getgid(), **more}
        self.peer.send("Spawn", fds=[in_read, out_write, err_write], job=job, rank=rank, argv=list(argv), wdir=wdir,
                       env=[f"PATH={os.environ['PATH']}", f"MARK={self.mark}", f"MOTET_JOB={job:016x}", *env], **fields)
        for fd in (in_read, out_write, err_write):
            os.close(fd)
        answer = self.peer.expect("Spawned")
        assert (answer["job"], answer["rank"]) == (job, rank)
        return in_write, out_read, err_read, answer

    def run(self, argv, **more):
        """Runs a rank to its end: what it wrote, and its exit status."""
        stdin, stdout, stderr, answer = self.spawn(argv, **more)
        assert answer["pid"] > 0, answer
        os.close(stdin)
        text = read_all(stdout)
        os.close(stderr)
        exited = self.peer.expect("Exited")
        return text, exited["status"]

    def close(self):
        self.peer.close()
        try:
            self.process.wait(5)
        finally:
            self.process.kill()


def read_all(fd):
    with os.fdopen(fd, "rb") as f:
        return f.read().decode()


@pytest.fixture
def spawner(mark):
    s = Spawner(mark)
    yield s
    s.close()


def test_runs_a_program_with_its_descriptors(spawner):
    stdin, stdout, stderr, answer = spawner.spawn(["sh", "-c", "read x; echo out $x; echo err >&2; exit 7"])
    assert answer["pid"] > 0 and "error" not in answer
    os.write(stdin, b"hello\n")
    os.close(stdin)
    assert read_all(stdout) == "out hello\n"
    assert read_all(stderr) == "err\n"
    exited = spawner.peer.expect("Exited")
    assert os.waitstatus_to_exitcode(exited["status"]) == 7


def test_environment_is_complete_and_the_last_value_counts(spawner):
    text, _ = spawner.run(["env"], env=["A=1", "B=2", "A=3"])
    lines = text.splitlines()
    assert "A=3" in lines and "A=1" not in lines and "B=2" in lines
    assert not any(line.startswith("PWD") for line in lines)


def test_only_three_descriptors_are_open(spawner):
    text, _ = spawner.run(["sh", "-c", "sleep 5 & ls /proc/$!/fd; kill $!"])
    assert text.split() == ["0", "1", "2"]


def test_signals_are_as_by_default(spawner):
    text, _ = spawner.run(["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"])
    assert all(int(line.split()[1], 16) == 0 for line in text.splitlines())


def test_path_of_the_rank_is_searched(spawner, tmp_path):
    tool = tmp_path / "only-here"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    text, _ = spawner.run(["only-here"], env=[f"PATH={tmp_path}:/bin"])
    assert text == "found\n"


@pytest.mark.parametrize("argv, wdir, error", [
    (["no-such-program"], "/", "execve 'no-such-program': No such file or directory"),
    (["/etc/passwd"], "/", "execve '/etc/passwd': Permission denied"),
    (["true"], "/no/such/place", "chdir '/no/such/place': No such file or directory"),
])
def test_failures_are_told_precisely(spawner, argv, wdir, error):
    *fds, answer = spawner.spawn(argv, wdir=wdir)
    for fd in fds:
        os.close(fd)
    assert answer["pid"] <= 0 and answer["error"] == error
    # And the spawner goes on; the failed one's exit is no news.
    assert spawner.run(["echo", "next"]) == ("next\n", 0)


def test_directory_umask_and_group(spawner, tmp_path):
    text, _ = spawner.run(["sh", "-c", "pwd; umask; cut -d' ' -f1,5,6 /proc/$$/stat"], wdir=str(tmp_path), umask=0o027)
    where, mask, ids = text.splitlines()
    assert where == str(tmp_path) and int(mask, 8) == 0o027
    pid, group, session = map(int, ids.split())
    assert pid == group, "a rank leads its own group"
    assert session == os.getsid(spawner.process.pid), "but stays in the session, by which the kernel shares out the processor"


@pytest.mark.skipif(os.getuid() != 0, reason="only root changes users")
def test_becomes_the_user(spawner):
    text, _ = spawner.run(["sh", "-c", "id -u; id -g; grep Groups /proc/self/status"], uid=65534, gid=65534)
    assert text.split()[:2] == ["65534", "65534"] and "0" not in text.split()[3:]


@pytest.mark.skipif(os.getuid() != 0, reason="only root changes users")
def test_closed_directory_in_path_does_not_hide_what_is_missing(spawner, tmp_path):
    tmp_path.chmod(0o700)
    *fds, answer = spawner.spawn(["nothing"], uid=65534, gid=65534, env=[f"PATH={tmp_path}:/bin"])
    for fd in fds:
        os.close(fd)
    assert answer["error"] == "execve 'nothing': No such file or directory"
    (tmp_path / "data").write_text("")
    *fds, answer = spawner.spawn(["data"], env=[f"PATH=/bin:{tmp_path}:/usr/bin"])
    for fd in fds:
        os.close(fd)
    assert answer["error"] == "execve 'data': Permission denied"


@pytest.mark.skipif(os.getuid() != 0, reason="only root changes users")
def test_directory_is_entered_as_the_user(spawner, tmp_path):
    tmp_path.chmod(0o700)
    *fds, answer = spawner.spawn(["true"], uid=65534, gid=65534, wdir=str(tmp_path))
    for fd in fds:
        os.close(fd)
    assert "Permission denied" in answer["error"]


def binding(to, over=0, width=1, report=False):
    return {"to": to, "over": over, "width": width, "report": report}


def test_a_binding_that_cannot_be_is_refused(spawner):
    for wrong, words in ((binding(1, width=5000), "fewer of these"), (binding(77), "not known"), (binding(1, over=99), "not known")):
        *fds, answer = spawner.spawn(["true"], binding=wrong)
        for fd in fds:
            os.close(fd)
        assert words in answer["error"], answer


def test_a_program_is_looked_for_in_a_path(spawner, tmp_path):
    program = tmp_path / "here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    text, _ = spawner.run(["here"], path=f"/nowhere:{tmp_path}")
    assert text == "found\n"
    *fds, answer = spawner.spawn(["true"], path=str(tmp_path))
    for fd in fds:
        os.close(fd)
    assert "No such file" in answer["error"], answer


def test_binding(spawner):
    allowed = sorted(os.sched_getaffinity(0))
    for index in range(3):
        text, _ = spawner.run(["grep", "Cpus_allowed_list", "/proc/self/status"], binding=binding(1), bind_index=index)
        assert text.split()[1] != "" and set(cpus(text.split()[1])) <= set(allowed)
    text, _ = spawner.run(["grep", "Cpus_allowed_list", "/proc/self/status"], cpus=[allowed[-1]])
    assert cpus(text.split()[1]) == [allowed[-1]]


def cpus(text):
    out = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        out += range(int(low), int(high or low) + 1)
    return out


def test_signal_reaches_the_group_and_status_comes_back(spawner):
    stdin, stdout, stderr, _ = spawner.spawn(["sh", "-c", "trap 'exit 3' USR1; echo up; while :; do sleep 0.02; done"])
    assert os.read(stdout, 3) == b"up\n"
    spawner.peer.send("SpawnKill", job=JOB, signal=int(signal.SIGUSR1))
    assert os.waitstatus_to_exitcode(spawner.peer.expect("Exited")["status"]) == 3
    for fd in (stdin, stdout, stderr):
        os.close(fd)


def test_signal_right_after_the_order_is_not_lost(spawner):
    null = os.open("/dev/null", os.O_RDWR)
    for rank in range(100):
        spawner.peer.send("Spawn", fds=[null, null, null], job=JOB, rank=rank, argv=["sleep", "60"], wdir="/", uid=os.getuid(),
                          gid=os.getgid(), env=["PATH=/bin:/usr/bin", f"MARK={spawner.mark}"])
        spawner.peer.send("SpawnKill", job=JOB, rank=rank, signal=int(signal.SIGTERM))
        assert spawner.peer.expect("Spawned")["pid"] > 0
        assert os.waitstatus_to_exitcode(spawner.peer.expect("Exited")["status"]) == -15
    os.close(null)


def test_stop_and_continue(spawner):
    *fds, answer = spawner.spawn(["sleep", "60"])

    def state():
        with open(f"/proc/{answer['pid']}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    spawner.peer.send("SpawnKill", job=JOB, signal=int(signal.SIGTSTP))
    assert wait_until(lambda: state() == "T")
    spawner.peer.send("SpawnKill", job=JOB, signal=int(signal.SIGCONT))
    assert wait_until(lambda: state() == "S")
    spawner.peer.send("SpawnKill", job=JOB, signal=int(signal.SIGKILL))
    assert os.waitstatus_to_exitcode(spawner.peer.expect("Exited")["status"]) == -9
    for fd in fds:
        os.close(fd)


# A child in a session of its own whose parent has gone, with its own environment: the hardest to find.
HIDE = "setsid sh -c 'echo $$; exec sleep 61' & wait_for=$!; read x; exit 0"


def hidden(spawner, rank=0, clean=False):
    script = HIDE.replace("setsid sh", "setsid env -i MARK=$MARK sh") if clean else HIDE
    stdin, stdout, stderr, answer = spawner.spawn(["sh", "-c", script], rank=rank)
    pid = int(os.read(stdout, 32))
    for fd in (stdout, stderr):
        os.close(fd)
    return stdin, pid, answer["pid"]


def test_job_kill_reaches_descendants_of_living_and_dead_ranks(spawner):
    first, orphan, _ = hidden(spawner, rank=0)
    os.close(first)  # ends the rank; its child stays
    spawner.peer.expect("Exited")
    second, child, _ = hidden(spawner, rank=1, clean=True)
    other = spawner.spawn(["sleep", "60"], job=JOB + 1)
    assert alive(orphan) and alive(child)
    spawner.peer.send("SpawnKill", job=JOB, signal=int(signal.SIGKILL))
    assert os.waitstatus_to_exitcode(spawner.peer.expect("Exited")["status"]) == -9
    assert wait_until(lambda: not alive(orphan) and not alive(child))
    assert alive(other[3]["pid"]), "another job lives on"
    for fd in (second, *other[:3]):
        os.close(fd)


def test_last_job_takes_along_what_nobody_owns(spawner):
    stdin, orphan, _ = hidden(spawner, clean=True)
    os.close(stdin)
    spawner.peer.expect("Exited")
    assert alive(orphan)
    spawner.peer.send("SpawnKill", job=JOB, signal=int(signal.SIGKILL))
    assert wait_until(lambda: not alive(orphan))
    assert spawner.run(["echo", "next"], job=JOB + 1) == ("next\n", 0)


def test_one_rank_killed_leaves_the_others(spawner):
    a = spawner.spawn(["sleep", "60"], rank=0)
    b = spawner.spawn(["sleep", "60"], rank=1)
    spawner.peer.send("SpawnKill", job=JOB, rank=1, signal=int(signal.SIGKILL))
    exited = spawner.peer.expect("Exited")
    assert exited["rank"] == 1 and alive(a[3]["pid"])
    for fd in (*a[:3], *b[:3]):
        os.close(fd)


def test_end_of_the_daemon_ends_everything(mark):
    spawner = Spawner(mark)
    stdin, child, rank = hidden(spawner, clean=True)
    first, orphan, _ = hidden(spawner, rank=1, clean=True)
    os.close(first)
    spawner.peer.expect("Exited")
    spawner.peer.close()
    assert spawner.process.wait(5) == 0
    assert wait_until(lambda: not any(map(alive, (child, rank, orphan))))
    os.close(stdin)


def test_kill_of_the_spawner_ends_its_ranks(mark):
    spawner = Spawner(mark)
    *fds, answer = spawner.spawn(["sleep", "60"])
    spawner.process.kill()
    spawner.process.wait(5)
    assert wait_until(lambda: not alive(answer["pid"]))
    spawner.peer.close()
    for fd in fds:
        os.close(fd)


def test_signals_to_the_spawner_do_not_end_it(spawner):
    assert spawner.run(["echo", "up"]) == ("up\n", 0)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        spawner.process.send_signal(sig)
    assert spawner.run(["echo", "here"]) == ("here\n", 0)


def test_many_at_once(spawner):
    n = 100
    null = os.open("/dev/null", os.O_RDWR)

    def order():
        for rank in range(n):
            spawner.peer.send("Spawn", fds=[null, null, null], job=JOB, rank=rank, argv=["true"], wdir="/", uid=os.getuid(),
                              gid=os.getgid(), env=["PATH=/bin:/usr/bin", f"MARK={spawner.mark}"])

    writer = threading.Thread(target=order)
    writer.start()
    seen = {"Spawned": set(), "Exited": set()}
    for _ in range(2 * n):
        name, fields = spawner.peer.receive()
        assert name == "Spawned" or fields["rank"] in seen["Spawned"], "Exited comes after Spawned"
        seen[name].add(fields["rank"])
    writer.join()
    os.close(null)
    assert all(len(ranks) == n for ranks in seen.values())


@pytest.mark.parametrize("data", [b"\0" * 64, HEADER.pack(1 << 30, 40, 0x4D46), HEADER.pack(2, 40, 0x4D46) + b"\xff\xff",
                                  HEADER.pack(0, 99, 0x4D46)])
def test_nonsense_ends_it(mark, data):
    spawner = Spawner(mark)
    *fds, answer = spawner.spawn(["sleep", "60"])
    spawner.peer.sock.sendall(data)
    assert spawner.process.wait(5) == 0
    assert wait_until(lambda: not alive(answer["pid"]))
    spawner.peer.close()
    for fd in fds:
        os.close(fd)
