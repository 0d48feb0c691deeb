# SPDX-License-Identifier: BSD-3-Clause
"""mpiexec alone: this test plays the daemon at the client socket."""
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import alive, program, wait_until

from protocol import Peer

JOB = 0xABCDEF0123456789


class Run:
    """One mpiexec and the daemon's end of its connection."""

    def __init__(self, path, mark, args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=(),
                 cwd=None, accept=True):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(10)
        environment = {"PATH": os.environ["PATH"], "MARK": mark, "MOTET_CLIENT_SOCKET": str(path), **dict(env)}
        self.process = subprocess.Popen([program("launcher/mpiexec"), *args], stdin=stdin, stdout=stdout, stderr=stderr,
                                        env=environment, cwd=cwd)
        connection, _ = listener.accept()
        listener.close()
        os.unlink(path)
        self.peer = Peer(connection)
        self.submit = self.peer.expect("Submit")
        if accept:
            self.accept()

    def accept(self):
        n = sum(app["n_ranks"] for app in self.submit["apps"])
        self.peer.send("Submitted", ok=True, job=JOB, placements=[{"node": "here", "ranks": list(range(n))}])

    def output(self, rank, data, stream=1):
        self.peer.send("Stdio", job=JOB, rank=rank, stream=stream, data=data)

    def killed(self):
        """The next Kill; the end of an empty input may come before it."""
        name, fields = self.peer.receive()
        while name == "Stdio" and not fields["data"]:
            name, fields = self.peer.receive()
        assert name == "Kill", (name, fields)
        return fields

    def end(self, code=0, **more):
        self.peer.send("JobEnd", job=JOB, code=code, **more)

    def finish(self, limit=10):
        """Exit code, stdout, stderr."""
        out, err = self.process.communicate(timeout=limit)
        self.peer.close()
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
def start(tmp_path, mark):
    runs = []

    def begin(*args, **more):
        runs.append(Run(tmp_path / "socket", mark, args, **more))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
        run.process.communicate()
        run.peer.close()


def refused(*args):
    """A command line that must not get as far as a daemon. Returns its message."""
    done = subprocess.run([program("launcher/mpiexec"), *args], capture_output=True, text=True, timeout=10,
                          env={"MOTET_CLIENT_SOCKET": "/nowhere"}, check=False)
    assert done.returncode == 2 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("mpiexec: ")
    return lines[0][len("mpiexec: "):]


def submitted(start, *args, **more):
    run = start(*args, accept=False, **more)
    run.peer.send("Submitted", ok=False, error="seen enough")
    code, out, err = run.finish()
    assert (code, out) == (1, "") and "mpiexec: seen enough\n" in err
    return run.submit


# ---- command line ----

def test_plain(start, tmp_path):
    where = tmp_path / "dir"
    where.mkdir()
    submit = submitted(start, "-n", "3", "prog", "-a", "--", "b:c", "", cwd=where, env={"FOO": "1", "MOTET_RANK": "7",
                                                                                     "PMI_RANK": "7"})
    (app,) = submit["apps"]
    assert app["n_ranks"] == 3 and app["argv"] == ["prog", "-a", "--", "b:c", ""] and app["env"] == []
    assert submit["hosts"] == [] and submit["wdir"] == str(where) and submit["name"] == "prog"
    assert "FOO=1" in submit["env"] and not any(e.startswith(("MOTET_RANK=", "PMI_RANK=")) for e in submit["env"])
    assert ("binding" in submit, submit["wait_mode"], submit["stdin_to_rank0"]) == (False, 0, True)
    assert "ranks_per_node" not in submit and submit["umask"] == 0o022


def test_options_with_one_dash_or_two(start):
    submit = submitted(start, "--np", "2", "--bind-to", "core", "-wait", "event", "--stdin", "none", "--oversubscribe",
                       "--allow-run-as-root", "-wdir", "/tmp", "--", "-odd-name")
    assert submit["apps"][0]["n_ranks"] == 2 and submit["apps"][0]["argv"] == ["-odd-name"]
    assert (submit["binding"]["to"], submit["wait_mode"], submit["stdin_to_rank0"]) == (1, 2, False)
    assert submit["apps"][0]["wdir"] == "/tmp"


def test_parts(start):
    submit = submitted(start, "-genv", "G", "g", "-n", "2", "-env", "A", "1", "a", "x", ":", "-n", "1", "-x", "B=2", "-x", "FOO",
                       "-wdir", "/", "b", ":", "c", env={"FOO": "foo"})
    a, b, c = submit["apps"]
    assert [x["n_ranks"] for x in (a, b, c)] == [2, 1, 1]
    assert a["env"] == ["A=1"] and b["env"] == ["FOO=foo", "B=2"] and c["env"] == []
    assert b["wdir"] == "/" and "wdir" not in a
    assert submit["env"].count("G=g") == 1


@pytest.mark.parametrize("args, base, part", [
    (["-genvnone", "-genv", "G", "1", "p"], ["G=1"], []),
    (["-genvlist", "FOO,NO", "p"], ["FOO=foo"], []),
    (["-envnone", "-env", "A", "1", "p"], [], ["A=1"]),
    (["-genv", "G", "1", "-envlist", "BAR", "p"], [], ["BAR=bar", "G=1"]),
])
def test_environment_modes(start, args, base, part):
    submit = submitted(start, *args, env={"FOO": "foo", "BAR": "bar"})
    assert submit["env"] == base and submit["apps"][0]["env"] == part


def test_a_part_with_its_own_environment_does_not_take_the_others(start):
    submit = submitted(start, "a", ":", "-envnone", "b", env={"FOO": "foo"})
    assert submit["env"] == [] and "FOO=foo" in submit["apps"][0]["env"] and submit["apps"][1]["env"] == []


def test_missing_export_warns_once(start):
    run = start("-x", "NOT_THERE", "p")
    run.end()
    code, _, err = run.finish()
    assert code == 0 and err == "mpiexec: -x NOT_THERE: there is no such variable here, ignoring\n"


@pytest.mark.parametrize("args, hosts", [
    (["-n", "4", "-hosts", "a,b,c", "p"], ["a:1", "b:1", "c:1", "a:1"]),
    (["-n", "5", "-hosts", "a:2,b", "p"], ["a:2", "b:1", "a:2"]),
    (["-n", "5", "-hosts", "a,b", "-ppn", "2", "p"], ["a:2", "b:2", "a:1"]),
    (["-hosts", "a:2,b:3", "p"], ["a:2", "b:3"]),
    (["-n", "1", "-host", "a", "p", ":", "-n", "2", "-host", "b:2", "q"], ["a:1", "b:2"]),
    (["-n", "2", "-host", "127.0.0.1,a", "p"], ["localhost:1", "a:1"]),
    (["-n", "3", "-host", "a:2,b:2", "p", ":", "-n", "2", "q"], ["a:2", "b:1", "b:1", "a:1"]),
])
def test_placement(start, args, hosts):
    assert submitted(start, *args)["hosts"] == hosts


def test_local_hosts_mean_the_daemons_own_node(start):
    hosts = f"localhost:2,127.0.0.1,{socket.gethostname()}"
    assert submitted(start, "-n", "4", "-hosts", hosts, "p")["hosts"] == ["localhost:2", "localhost:1", "localhost:1"]


def test_ranks_per_node_without_hosts(start):
    submit = submitted(start, "-n", "4", "-ppn", "2", "p")
    assert submit["hosts"] == [] and submit["ranks_per_node"] == 2


def test_hostfile(start, tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# cluster\n\na slots=2\n b:1   max_slots=1 # small\nc\tmax-slots=9 slots=3\n")
    assert submitted(start, "-f", str(file), "p")["hosts"] == ["a:2", "b:1", "c:3"]
    assert submitted(start, "-n", "9", "-machinefile", str(file), "p")["hosts"] == ["a:2", "b:1", "c:3", "a:2", "c:1"]


def test_configfile(start, tmp_path):
    file = tmp_path / "config"
    file.write_text("# two programs\n-n 1 \"a b\" 'c d' \\\n  e\\ f\n\n-n 2 -env A 'x y' q # not a comment\n")
    submit = submitted(start, "-l", "-configfile", str(file))
    a, b = submit["apps"]
    assert a["argv"] == ["a b", "c d", "e f"] and b["argv"] == ["q", "#", "not", "a", "comment"] and b["env"] == ["A=x y"]


@pytest.mark.parametrize("args, message", [
    ([], "no program given (see mpiexec --help)"),
    (["-n"], "-n: expected N after it"),
    (["-n", "0", "p"], "-n 0: expected a whole number from 1 to 1048576"),
    (["-np", "2x", "p"], "-np 2x: expected a whole number from 1 to 1048576"),
    (["-n", "99999999999999999999", "p"], "-n 99999999999999999999: expected a whole number from 1 to 1048576"),
    (["--frobnicate", "p"], "--frobnicate: unknown option (see mpiexec --help)"),
    (["p", ":"], "part 2 between colons names no program"),
    ([":", "p"], "part 1 between colons names no program"),
    (["p", ":", "-l", "q"], "-l: this option is for the whole job and must stand before the first program"),
    (["-bind-to", "chair", "p"],
     "-bind-to chair: expected none, hwthread, core, l1cache, l2cache, l3cache, numa, socket or machine, and :N for N of them"),
    (["-wait", "busy", "p"], "-wait busy: expected adaptive, spin or event"),
    (["-s", "all", "p"], "-s all: expected 0 or none"),
    (["-timeout", "-1", "p"], "-timeout -1: expected seconds, such as 30 or 0.5"),
    (["-hosts", "a,,b", "p"], "-hosts: '' is not a host name"),
    (["-hosts", "a:0", "p"], "-hosts: 'a:0': expected a number of ranks from 1 to 4096 after ':'"),
    (["-hosts", "a/b", "p"], "-hosts: 'a/b' is not a host name"),
    (["-env", "A=B", "c", "p"], "-env A=B: expected the name of a variable, and its value as the next argument"),
    (["-x", "=3", "p"], "-x =3: expected NAME or NAME=value"),
    (["-genvlist", "A,,B", "p"], "-genvlist: expected names of variables separated by commas"),
    (["-configfile", "/nowhere/at/all"], "-configfile: cannot read '/nowhere/at/all': No such file or directory"),
    (["-n", "2", "-configfile", "/dev/null"], "-configfile: options of a program belong into the file, not before it"),
    (["-configfile", "/dev/null"], "/dev/null: there is no program in this file"),
    (["-f", "/dev/null", "p"], "-f: /dev/null: there is no host in this file"),
    (["p", ":", "-host", "a", "q"],
     "-host: some programs have hosts and some have not; name hosts for each, or for the first one only"),
    (["-n", "1048576", "p", ":", "q"], "a job has at most 1048576 ranks"),
    ([""], "the program's name is empty"),
])
def test_bad_command_lines(args, message):
    assert refused(*args) == message


@pytest.mark.parametrize("text, message", [
    ("a\nb slots=x\n", "2: 'slots=x': expected a number from 1 to 4096"),
    ("a what=1\n", "1: 'what=1': expected slots=N or max_slots=N"),
])
def test_bad_hostfiles(tmp_path, text, message):
    file = tmp_path / "h"
    file.write_text(text)
    assert refused("-f", str(file), "p") == f"-f: {file}:{message}"


def test_hosts_that_are_full(tmp_path):
    file = tmp_path / "h"
    file.write_text("a max_slots=2\nb max_slots=1\n")
    assert refused("-n", "5", "-f", str(file), "p") == "all hosts have their max_slots, and 2 more ranks are to be placed"


@pytest.mark.parametrize("text, message", [
    ("-n 1 p\n-n x q\n", "2: -n x: expected a whole number from 1 to 1048576"),
    ("p 'a\n", "1: a quote is not closed"),
    ("p\n-l q\n", "2: -l: this option is for the whole job and must stand before the first program"),
    ("a : b\n", "1: a line is one program: ':' is for the command line"),
    ("-configfile x\n", "1: -configfile: a configuration file cannot name another"),
])
def test_bad_configfiles(tmp_path, text, message):
    file = tmp_path / "c"
    file.write_text(text)
    assert refused("-configfile", str(file)) == f"{file}:{message}"


def test_help_and_version():
    mpiexec = program("launcher/mpiexec")
    text = subprocess.run([mpiexec, "--help"], capture_output=True, text=True, timeout=10, check=True).stdout
    assert all(name in text for name in ("-hosts", "-configfile", "-bind-to"))
    assert "Motet" in subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout


def test_named_daemon_that_is_not_there():
    done = subprocess.run([program("launcher/mpiexec"), "p"], capture_output=True, text=True, timeout=10,
                          env={"MOTET_CLIENT_SOCKET": "/nowhere/at/all"}, check=False)
    assert done.returncode == 1
    assert done.stderr == ("mpiexec: cannot reach the daemon at /nowhere/at/all (from MOTET_CLIENT_SOCKET): "
                           "No such file or directory\n")


# ---- output ----

def test_output_of_both_streams(start):
    run = start("-n", "2", "p")
    run.output(0, b"one\n")
    run.output(1, b"two\n", stream=2)
    run.output(0, b"\x00\xff no newline")
    run.end()
    code = run.process.wait(10)
    assert code == 0
    assert run.process.stdout.read() == b"one\n\x00\xff no newline" and run.process.stderr.read() == b"two\n"


def test_tagged_lines_stay_whole(start):
    run = start("-l", "-n", "2", "p")
    run.output(0, b"hal")
    run.output(1, b"first\nsec")
    run.output(0, b"f\n\n")
    run.output(1, b"ond\nlast")
    run.output(1, b"")
    run.output(0, b"error\n", stream=2)
    run.output(0, b"open")
    run.end()
    assert run.finish() == (0, "[1] first\n[0] half\n[0] \n[1] second\n[1] last\n[0] open\n", "[0] error\n")


def test_untagged_lines_are_not_torn_but_a_prompt_shows(start):
    run = start("-n", "2", "p")
    run.output(0, b"he")
    run.output(1, b"other\n")
    run.output(0, b"llo\n")
    assert run.process.stdout.readline() == b"other\n" and run.process.stdout.readline() == b"hello\n"
    run.output(0, b"name? ")
    assert os.read(run.process.stdout.fileno(), 100) == b"name? "
    run.end()
    assert run.finish()[0] == 0


def test_long_tagged_line_is_cut_not_kept(start):
    run = start("-l", "p")
    for _ in range(5):
        run.output(0, b"x" * (1 << 18))
    run.output(0, b"\n")
    run.end()
    _, out, _ = run.finish()
    lines = out.splitlines()
    assert [len(line) for line in lines] == [4 + (1 << 20), 4 + (1 << 18)] and all(line.startswith("[0] x") for line in lines)


def test_nothing_is_lost_with_a_slow_reader(start):
    run = start("p")
    n = 64 << 20
    sent = bytes(range(256)) * (n // 256)
    pid = os.fork()
    if pid == 0:  # The daemon writes as fast as it is read.
        try:
            for at in range(0, n, 1 << 16):
                run.output(0, sent[at:at + (1 << 16)])
            run.end()
        finally:
            os._exit(0)
    time.sleep(0.3)  # the reader's slowness, not a wait for something
    with open(f"/proc/{run.process.pid}/status") as f:
        kilobytes = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    assert kilobytes < 48 << 10, "what nobody reads yet stays with the daemon"
    got = run.process.stdout.read()
    os.waitpid(pid, 0)
    assert got == sent and run.process.wait(10) == 0


def test_closed_output_ends_the_job_quietly(start):
    run = start("p")
    run.process.stdout.close()
    run.output(0, b"line\n" * 1000)
    kill = run.killed()
    assert kill["signal"] == signal.SIGPIPE
    run.end(code=141, message="rank 0 on node here was killed by signal 13")
    assert run.process.wait(10) == 141 and run.process.stderr.read() == b""


def test_ranks_that_ignore_the_closed_output_are_ended(start):
    run = start("p")
    run.process.stdout.close()
    run.output(0, b"line\n" * 1000)
    assert run.killed()["signal"] == signal.SIGPIPE
    assert run.killed()["signal"] == signal.SIGKILL
    run.end(code=137)
    assert run.process.wait(10) == 141


# ---- input ----

def test_input_goes_to_rank_0_and_ends(start):
    run = start("p", stdin=subprocess.PIPE)
    run.process.stdin.write(b"hello")
    run.process.stdin.close()
    run.process.stdin = None
    stdio = run.peer.expect("Stdio")
    assert (stdio["rank"], stdio["stream"], stdio["data"], stdio["job"]) == (0, 0, b"hello", JOB)
    assert run.peer.expect("Stdio")["data"] == b""
    run.end()
    assert run.finish()[0] == 0


def test_input_waits_for_room(start, tmp_path):
    file = tmp_path / "input"
    file.write_bytes(b"i" * (1 << 20))
    with open(file, "rb") as f:
        run = start("p", stdin=f)
    got = 0
    while got < 256 << 10:
        got += len(run.peer.expect("Stdio")["data"])
    assert got == 256 << 10 and not select.select([run.peer.sock], [], [], 0.2)[0]
    while True:
        run.peer.send("StdioWindow", job=JOB, consumed=got, stream=0)
        data = run.peer.expect("Stdio")["data"]
        got += len(data)
        if not data:
            break
    assert got == 1 << 20
    run.end()
    assert run.finish()[0] == 0


def test_no_input(start):
    run = start("-s", "none", "p", stdin=subprocess.PIPE)
    run.process.stdin.write(b"unread")
    run.process.stdin.flush()
    assert not select.select([run.peer.sock], [], [], 0.2)[0]
    run.end()
    assert run.finish()[0] == 0


def test_input_stops_when_rank_0_has_gone(start):
    run = start("p", stdin=subprocess.PIPE)
    run.peer.send("RankExit", job=JOB, rank=0, node="here", status=0, finalized=True)
    run.output(0, b"mark\n")
    assert run.process.stdout.readline() == b"mark\n"
    run.process.stdin.write(b"unread")
    run.process.stdin.flush()
    assert not select.select([run.peer.sock], [], [], 0.2)[0]
    run.end()
    assert run.finish()[0] == 0


# ---- end ----

@pytest.mark.parametrize("code, shell", [(0, 0), (1, 1), (139, 139), (256, 1), (-1, 255), (300, 44)])
def test_exit_code(start, code, shell):
    run = start("p")
    run.end(code=code, message="rank 1 on node n2 was killed by signal 11 (Segmentation fault)")
    got, _, err = run.finish()
    assert got == shell
    assert err == ("" if code == 0 else "mpiexec: rank 1 on node n2 was killed by signal 11 (Segmentation fault)\n")


def test_first_failure_is_named_when_the_daemon_gives_no_message(start):
    run = start("-n", "2", "p")
    run.peer.send("RankExit", job=JOB, rank=1, node="n2", status=int(signal.SIGSEGV), finalized=False)
    run.peer.send("RankExit", job=JOB, rank=0, node="n1", status=int(signal.SIGKILL), finalized=False)
    run.end(code=139)
    assert run.finish() == (139, "", "mpiexec: rank 1 on node n2 was killed by signal 11 (Segmentation fault)\n")


def test_lost_daemon(start):
    run = start("p")
    run.output(0, b"last words")
    run.peer.close()
    assert run.finish() == (1, "last words", "mpiexec: the connection to the daemon is lost (it ended); the job has been ended\n")


def test_nonsense_from_the_daemon(start):
    run = start("p")
    run.peer.sock.sendall(b"x" * 100)
    code, _, err = run.finish()
    assert code == 1 and "Protocol error" in err


def test_timeout(start):
    run = start("--timeout", "0.2", "p")
    kill = run.killed()
    assert kill["signal"] == signal.SIGKILL and kill["code"] == 124
    run.end(code=124, message="killed")
    assert run.finish() == (124, "", "mpiexec: the job has run for the 0.2 s of -timeout and is ended\n")


def test_timeout_in_the_environment(start):
    run = start("p", env={"MPIEXEC_TIMEOUT": "0.2"})
    assert run.killed()["code"] == 124
    run.end(code=124, message="killed")
    assert run.finish()[0] == 124
    done = subprocess.run([program("launcher/mpiexec"), "p"], capture_output=True, text=True, timeout=10, env={"MPIEXEC_TIMEOUT": "soon"},
                          check=False)
    assert (done.returncode, done.stderr) == (2, "mpiexec: MPIEXEC_TIMEOUT is soon: expected seconds, such as 30 or 0.5\n")


def test_daemon_that_does_not_confirm(start):
    run = start("-timeout", "0.1", "p")
    begin = time.monotonic()
    run.killed()
    code, _, err = run.finish()
    assert code == 124 and 4 < time.monotonic() - begin < 7 and "does not confirm" in err


# ---- signals ----

@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT])
def test_signals_are_forwarded(start, sig):
    run = start("p")
    run.output(0, b"up\n")
    run.process.stdout.readline()
    run.process.send_signal(sig)
    kill = run.killed()
    assert (kill["signal"], kill["job"]) == (sig, JOB)
    run.end()
    assert run.finish() == (0, "", "")


def test_stop_and_continue(start):
    run = start("p")
    run.output(0, b"up\n")
    run.process.stdout.readline()
    run.process.send_signal(signal.SIGTSTP)
    assert run.killed()["signal"] == signal.SIGTSTP

    def state():
        with open(f"/proc/{run.process.pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    assert wait_until(lambda: state() == "T")
    run.process.send_signal(signal.SIGCONT)
    assert run.killed()["signal"] == signal.SIGCONT
    run.end()
    assert run.finish()[0] == 0


def test_second_interrupt_kills(start):
    run = start("p")
    run.output(0, b"up\n")
    run.process.stdout.readline()
    run.process.send_signal(signal.SIGINT)
    assert run.killed()["signal"] == signal.SIGINT
    run.process.send_signal(signal.SIGINT)
    assert run.killed()["signal"] == signal.SIGKILL
    run.end(code=137, message="killed")
    assert run.finish() == (130, "", "")


def test_interrupt_with_a_reader_that_is_stuck(start):
    run = start("p")
    chunk = b"x" * 65535 + b"\n"
    for _ in range(200):
        run.peer.sock.settimeout(0.3)
        try:
            run.output(0, chunk)
        except TimeoutError:
            break
    else:
        pytest.fail("mpiexec takes everything though nobody reads")
    run.peer.sock.settimeout(10)
    run.process.send_signal(signal.SIGINT)
    assert run.killed()["signal"] == signal.SIGINT
    run.process.send_signal(signal.SIGTERM)
    assert run.killed()["signal"] == signal.SIGKILL
    run.peer.close()
    assert run.process.wait(10) == 143


def test_interrupt_before_the_job_is_known(start):
    run = start("p", accept=False)
    run.process.send_signal(signal.SIGINT)
    assert run.finish() == (130, "", "")


def test_terminal_in_the_background_is_not_read(tmp_path, mark):
    """On a terminal whose foreground is another group, mpiexec neither reads nor stops."""
    path = tmp_path / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    listener.settimeout(10)
    mpiexec = program("launcher/mpiexec")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(MARK=mark, MOTET_CLIENT_SOCKET=str(path))
        # An interactive shell's job control puts the child into a group of its own, in the background.
        os.execvp("bash", ["bash", "-c", f"set -m; {mpiexec} p & wait $!; echo code $?"])
    connection, _ = listener.accept()
    listener.close()
    peer = Peer(connection)
    peer.expect("Submit")
    peer.send("Submitted", ok=True, job=JOB)
    os.write(terminal, b"typed\n")
    assert not select.select([peer.sock], [], [], 0.7)[0]
    peer.send("JobEnd", job=JOB, code=5)
    text = b""
    while b"code" not in text:
        assert select.select([terminal], [], [], 10)[0]
        text += os.read(terminal, 1000)
    os.waitpid(pid, 0)
    os.close(terminal)
    peer.close()
    assert b"code 5" in text


# ---- private daemon ----

FAKE = """#!{python}
import os, socket, sys
lifeline = int(sys.argv[sys.argv.index("--lifeline") + 1])
assert "--private" in sys.argv and os.getsid(0) == os.getpid()
name = f"\\0motet-test-{{os.getpid()}}"
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen(1)
print(f"ready client=@{{name[1:]}} status=@none", flush=True)
open({log!r}, "w").write(str(os.getpid()))
connection, _ = listener.accept()
{action}
os.read(lifeline, 1)
open({log!r}, "a").write(" end")
"""


def private(tmp_path, mark, action):
    fake = tmp_path / "motetd"
    log = tmp_path / "log"
    sys_path = os.path.dirname(os.path.abspath(__file__))
    fake.write_text(FAKE.format(python=sys.executable, log=str(log), action=f"sys.path.insert(0, {sys_path!r})\n{action}"))
    fake.chmod(0o755)
    process = subprocess.Popen([program("launcher/mpiexec"), "-private", "-v", "p"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={"PATH": os.environ["PATH"], "MOTET_MOTETD": str(fake), "MARK": mark})
    return process, log


def test_private_daemon(tmp_path, mark):
    process, log = private(tmp_path, mark, """
from protocol import Peer
peer = Peer(connection)
peer.expect("Submit")
peer.send("Submitted", ok=True, job=1)
peer.send("Stdio", job=1, rank=0, stream=1, data=b"hello\\n")
peer.send("JobEnd", job=1, code=3)
""")
    out, err = process.communicate(timeout=10)
    assert process.returncode == 3 and out == "hello\n" and "status socket @none" in err
    assert log.read_text().endswith(" end"), "mpiexec waits for its daemon"


def test_private_daemon_ends_with_mpiexec(tmp_path, mark):
    process, log = private(tmp_path, mark, "")
    assert wait_until(lambda: log.exists() and log.read_text())
    process.kill()
    process.communicate()
    daemon = int(log.read_text().split()[0])
    assert wait_until(lambda: not alive(daemon))


def test_private_daemon_that_fails(tmp_path, mark):
    fake = tmp_path / "motetd"
    fake.write_text("#!/bin/sh\nexit 9\n")
    fake.chmod(0o755)
    done = subprocess.run([program("launcher/mpiexec"), "-private", "p"], capture_output=True, text=True, timeout=10,
                          env={"MOTET_MOTETD": str(fake), "MARK": mark, "PATH": os.environ["PATH"]}, check=False)
    assert done.returncode == 1 and f"{fake} ended with exit code 9 while starting" in done.stderr


def test_no_private_daemon_for_other_hosts(mark):
    done = subprocess.run([program("launcher/mpiexec"), "-private", "-host", "elsewhere", "p"], capture_output=True, text=True,
                          timeout=10, env={"MARK": mark}, check=False)
    assert done.returncode == 1 and "names other nodes" in done.stderr
