# SPDX-License-Identifier: BSD-3-Clause
"""Whole jobs on one node: mpiexec, a private daemon, its spawner and ranks that are plain programs."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import alive, program, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto"))
import status_views

PYTHON = sys.executable


class Job:
    def __init__(self, mark, args, stdin=subprocess.DEVNULL, **more):
        environment = {"PATH": os.environ["PATH"], "MARK": mark, **more.pop("env", {})}
        program("daemon/motetd"), program("daemon/spawner/motet-spawner")
        self.process = subprocess.Popen([program("launcher/mpiexec"), "-private", *args], stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment, **more)

    def finish(self, limit=20):
        out, err = self.process.communicate(timeout=limit)
        return self.process.returncode, out.decode(), err.decode()

    def tree(self):
        """Processes of this run by name: daemon, spawner and those below."""
        found, below = {}, {self.process.pid}
        rows = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    text = f.read()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            rows.append((int(pid), int(rest[1]), name))
        for _ in range(8):
            for pid, parent, name in rows:
                if parent in below and pid not in below:
                    below.add(pid)
                    found.setdefault(name, []).append(pid)
        return found


@pytest.fixture
def start(mark):
    jobs = []

    def begin(*args, **more):
        jobs.append(Job(mark, args, **more))
        return jobs[-1]

    yield begin
    for job in jobs:
        if job.process.poll() is None:
            job.process.kill()
        job.process.communicate()


def run(start, *args, limit=20, **more):
    return start(*args, **more).finish(limit)


def test_ranks_know_who_they_are(start):
    names = "MOTET_RANK MOTET_SIZE MOTET_LOCAL_RANK MOTET_LOCAL_SIZE PMI_RANK PMI_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE"
    code, out, err = run(start, "-l", "-n", "3", "sh", "-c", "echo " + " ".join("$" + name for name in names.split()))
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == [f"[{r}] {r} 3 {r} 3 {r} 3 {r} 3" for r in range(3)]


def test_directory_environment_and_arguments(start, tmp_path):
    code, out, _ = run(start, "-env", "A", "b c", "sh", "-c", 'pwd; echo "$A|$MARK|$1"', "sh", "x  y", cwd=tmp_path)
    assert code == 0 and out.splitlines()[0] == str(tmp_path) and out.splitlines()[1].startswith("b c|motet-test-")
    assert out.splitlines()[1].endswith("|x  y")


def test_parts(start):
    code, out, _ = run(start, "-l", "-n", "1", "sh", "-c", "echo a $MOTET_RANK of $MOTET_SIZE", ":", "-n", "2", "sh", "-c",
                       "echo b $MOTET_RANK of $MOTET_SIZE")
    assert code == 0 and sorted(out.splitlines()) == ["[0] a 0 of 3", "[1] b 1 of 3", "[2] b 2 of 3"]


def test_input(start, tmp_path):
    file = tmp_path / "input"
    file.write_bytes(os.urandom(3 << 20))
    with open(file, "rb") as f:
        job = start("-n", "2", "sh", "-c", "if [ $MOTET_RANK = 0 ]; then md5sum; else cat; fi", stdin=f)
    code, out, err = job.finish()
    expected = subprocess.run(["md5sum", file], capture_output=True, text=True, check=True).stdout.split()[0]
    assert (code, err) == (0, "") and out.split()[0] == expected


def test_much_output_of_many_ranks_arrives_whole(start):
    script = "import os,sys\nfor i in range(20000): sys.stdout.write(f'{os.environ[\"MOTET_RANK\"]} {i} ' + 'x' * 60 + '\\n')"
    code, out, err = run(start, "-n", "4", PYTHON, "-c", script, limit=60)
    assert (code, err) == (0, "")
    seen = {str(r): 0 for r in range(4)}
    for line in out.splitlines():
        rank, number, rest = line.split()
        assert rest == "x" * 60 and int(number) == seen[rank], "whole lines, in order"
        seen[rank] += 1
    assert set(seen.values()) == {20000}


def test_output_at_exit_is_not_lost(start):
    for _ in range(5):
        code, out, _ = run(start, "-n", "4", "sh", "-c", "head -c 200000 /dev/zero; exit 0")
        assert code == 0 and len(out) == 800000


@pytest.mark.parametrize("script, code, words", [
    ("exit 7", 7, ["rank 1", "exit", "7"]),
    ("kill -SEGV $$", 139, ["rank 1", "signal 11"]),
    ("kill -KILL $$", 137, ["rank 1", "signal 9"]),
])
def test_first_failure_ends_the_job(start, script, code, words):
    begin = time.monotonic()
    got, _, err = run(start, "-n", "3", "sh", "-c", f"if [ $MOTET_RANK = 1 ]; then {script}; fi; exec sleep 60")
    assert got == code and time.monotonic() - begin < 5
    lines = [line for line in err.splitlines() if line.startswith("mpiexec: ")]
    assert len(lines) == 1 and all(word in lines[0] for word in words) and "node" in lines[0], err


def test_program_that_is_not_there(start):
    code, _, err = run(start, "-n", "2", "no-such-program")
    assert code == 127 and "execve 'no-such-program': No such file or directory" in err


def test_directory_that_is_not_there(start):
    code, _, err = run(start, "-wdir", "/no/such/place", "true")
    assert code == 127 and "chdir '/no/such/place': No such file or directory" in err


def test_binding(start):
    code, out, _ = run(start, "-l", "-bind-to", "core", "-n", "3", "grep", "Cpus_allowed_list", "/proc/self/status")
    lines = sorted(out.splitlines())
    assert code == 0 and len(lines) == 3
    if len(os.sched_getaffinity(0)) > 1:
        assert len({line.split()[-1] for line in lines[:2]}) >= 1


def test_bindings_are_reported(start):
    code, out, err = run(start, "-n", "3", "-map-by", "core", "-report-bindings", "grep", "Cpus_allowed_list", "/proc/self/status")
    said = sorted(re.findall(r"mpiexec: rank (\d) on node \S+ is bound to processors ([\d,-]+)\n", err))
    assert code == 0 and [rank for rank, _ in said] == ["0", "1", "2"], err
    assert sorted(line.split()[-1] for line in out.splitlines()) == sorted(cpus for _, cpus in said)
    code, _, err = run(start, "-report-bindings", "true")
    assert code == 0 and re.fullmatch(r"mpiexec: rank 0 on node \S+ is not bound\n", err), err
    code, _, err = run(start, "-n", "1", "-bind-to", "core:4096", "true")
    assert code != 0 and "fewer of these than each rank is to have" in err


def test_the_map_is_shown(start):
    code, out, err = run(start, "-n", "5", "-display", "map", "true")
    assert (code, out) == (0, "") and re.fullmatch(r"mpiexec: node \S+ has ranks 0-4\n", err), err


def test_slots_of_localhost_count(start):
    code, out, _ = run(start, "-host", "localhost:3", "echo", "x")
    assert (code, out) == (0, "x\n" * 3)
    code, out, _ = run(start, "-N", "2", "echo", "x")
    assert (code, out) == (0, "x\n" * 2)


def test_max_slots_of_localhost_count(start, tmp_path):
    (tmp_path / "hosts").write_text("localhost slots=1 max_slots=2\n")
    code, _, err = run(start, "-n", "3", "-f", str(tmp_path / "hosts"), "true")
    assert code == 2 and "all hosts have their max_slots, and 1 more ranks are to be placed" in err


def test_output_in_files(start, tmp_path):
    script = "echo out $MOTET_RANK; echo err $MOTET_RANK >&2"
    code, out, err = run(start, "-n", "3", "-outfile-pattern", f"{tmp_path}/a/%r.%p", "-errfile-pattern", f"{tmp_path}/all%%", "sh", "-c",
                         script)
    assert (code, out, err) == (0, "", "")
    assert [(tmp_path / "a" / f"{rank}.0").read_text() for rank in range(3)] == [f"out {rank}\n" for rank in range(3)]
    assert sorted((tmp_path / "all%").read_text().splitlines()) == ["err 0", "err 1", "err 2"]

    code, out, err = run(start, "-n", "11", "-output-filename", f"{tmp_path}/b%r", "sh", "-c", script)
    assert code == 0 and len(out.splitlines()) == len(err.splitlines()) == 11
    assert (tmp_path / "b%r" / "1" / "rank.07" / "stdout").read_text() == "out 7\n"
    assert (tmp_path / "b%r" / "1" / "rank.10" / "stderr").read_text() == "err 10\n"
    code, out, err = run(start, "-n", "2", "-output-filename", f"{tmp_path}/c:nocopy", "sh", "-c", script)
    assert (code, out, err) == (0, "", "") and (tmp_path / "c" / "1" / "rank.1" / "stdout").read_text() == "out 1\n"


def test_many_files_of_output(start, tmp_path):
    """More than mpiexec keeps open, written in turns: each is whole and in order."""
    script = "for i in 1 2 3; do echo $MOTET_RANK $i; sleep 0.3; done"
    code, _, _ = run(start, "-n", "150", "-outfile-pattern", f"{tmp_path}/%r", "-errfile-pattern", f"{tmp_path}/e%r", "sh", "-c",
                     f"({script}) & ({script}) >&2; wait", limit=120)
    assert code == 0
    for rank in range(150):
        whole = "".join(f"{rank} {i}\n" for i in (1, 2, 3))
        assert (tmp_path / str(rank)).read_text() == (tmp_path / f"e{rank}").read_text() == whole


def test_a_file_that_cannot_be_written_is_said_once(start):
    code, out, err = run(start, "-n", "2", "-outfile-pattern", "/proc/none/%r", "sh", "-c", "echo a; sleep 0.2; echo b")
    assert code == 1 and out == ""
    assert sorted(err.splitlines()) == [f"mpiexec: cannot write '/proc/none/{rank}': No such file or directory; what comes for it is lost"
                                        for rank in range(2)]


def test_another_librarys_options_are_named(start):
    code, out, err = run(start, "--mca", "btl", "tcp,self", "echo", "x")
    assert (code, out, err) == (0, "x\n", "mpiexec: --mca btl tcp,self: this is for another MPI library, ignoring\n")


def test_a_path_for_the_program_and_options_from_a_file(start, tmp_path):
    (tmp_path / "tool").write_text("#!/bin/sh\necho $A $B\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "options").write_text(f"# of the tool\n-path /nowhere:{tmp_path}\n-env A 'one two' -env B 3\n")
    code, out, _ = run(start, "-n", "2", "-file", str(tmp_path / "options"), "tool")
    assert (code, out) == (0, "one two 3\n" * 2)
    (tmp_path / "options").write_text("-n 2 tool\n")
    code, _, err = run(start, "-file", str(tmp_path / "options"), "true")
    assert code == 2 and "tool: expected only options in a file of options" in err


def test_the_end_of_the_time_is_explained(start, tmp_path):
    library = os.path.dirname(program("client/libmpi_abi.so.1"))
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "hang.c")
    subprocess.run(["cc", "-o", str(tmp_path / "hang"), source, f"-I{library}/abi", f"-L{library}", "-lmpi_abi", f"-Wl,-rpath,{library}"],
                   check=True)
    code, _, err = run(start, "-n", "2", "-timeout", "2", str(tmp_path / "hang"))
    assert code == 124 and "the job has run for the 2 s of -timeout and is ended" in err
    assert "rank 0 waits" in err, err


def test_a_program_that_loads_another_library_is_named(start, tmp_path):
    other, program_file = tmp_path / "other", tmp_path / "program"
    other.mkdir()
    for name, soname in (("libmpi_abi.so", "libmpi_abi.so.1"), ("libmpi_abi.so.1", "libmpi_abi.so.1"), ("libmpi.so", "libmpi.so.40")):
        subprocess.run(["cc", "-x", "c", "-", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", str(other / name)],
                       input="void MPI_Init(void) {}", text=True, check=True)
    source = "void MPI_Init(void); int main(void) { return 0; } void *keep = (void *)MPI_Init;"
    for link, words in ((["-Wl,-rpath,$ORIGIN/other", "-lmpi_abi"], "because of the run path inside it; set LD_LIBRARY_PATH to"),
                        (["-Wl,-rpath,$ORIGIN/other", "-Wl,--disable-new-dtags", "-lmpi_abi"], "change it (patchelf --set-rpath) to"),
                        (["-lmpi"], "is linked with libmpi.so.40 (Open MPI)")):
        subprocess.run(["cc", "-x", "c", "-", "-o", str(program_file), f"-L{other}", *link], input=source, text=True, check=True)
        _, _, err = run(start, "-n", "1", str(program_file))
        assert words in err, err
    subprocess.run(["cc", "-x", "c", "-", "-o", str(program_file), f"-L{other}", "-lmpi_abi"], input=source, text=True, check=True)
    _, _, err = run(start, "-x", f"LD_LIBRARY_PATH={other}", str(program_file))
    assert "because of LD_LIBRARY_PATH; take it out" in err, err


@pytest.mark.parametrize("variables, words", [
    ({"OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI's mpiexec has started this process as one of 4"),
    ({"PMI_SIZE": "2"}, "the mpiexec of MPICH or Intel MPI"),
    ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"}, "srun has started this process"),
    ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291"}, None),
    ({"OMPI_COMM_WORLD_SIZE": "1", "PMI_SIZE": "1"}, None),
    ({"PMI_SIZE": "2", "MOTET_SINGLETON": "yes"}, None),
])
def test_another_launcher_is_named(variables, words):
    run_ = subprocess.run([program("tests/mpi/mpi_objects")], env={"PATH": os.environ["PATH"], **variables}, capture_output=True,
                          text=True, timeout=60)
    if words is None:
        assert run_.returncode == 0, run_.stderr
    else:
        assert run_.returncode != 0 and words in run_.stderr, run_.stderr


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_signals_reach_all_ranks(start, sig):
    name = signal.Signals(sig).name[3:]
    job = start("-n", "3", "sh", "-c", f"trap 'echo got; exit 0' {name}; echo up; while :; do sleep 0.02; done")
    assert [job.process.stdout.readline() for _ in range(3)] == [b"up\n"] * 3
    job.process.send_signal(sig)
    code, out, _ = job.finish()
    assert code == 0 and out == "got\n" * 3


def test_interrupt_that_nobody_handles(start):
    job = start("-n", "2", "sh", "-c", "echo up; exec sleep 60")
    job.process.stdout.readline()
    job.process.stdout.readline()
    job.process.send_signal(signal.SIGINT)
    assert job.finish(10)[0] == 130


def test_second_interrupt_kills_at_once(start):
    job = start("-n", "2", "sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 0.05; done")
    job.process.stdout.readline()
    job.process.stdout.readline()
    begin = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    time.sleep(0.1)  # two signals at the same moment are one
    job.process.send_signal(signal.SIGINT)
    code, _, _ = job.finish(10)
    assert code == 130 and time.monotonic() - begin < 3


def test_stop_and_continue(start):
    job = start("sh", "-c", "echo up; read x < /dev/null; while :; do echo beat; sleep 0.02; done")
    job.process.stdout.readline()
    job.process.send_signal(signal.SIGTSTP)

    def states():
        out = []
        for pids in job.tree().values():
            for pid in pids:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:  # a short sleep may have ended meanwhile
                    out.append(f.read().rsplit(")", 1)[1].split()[0])
        return out

    assert wait_until(lambda: "T" in states())
    job.process.send_signal(signal.SIGCONT)
    assert wait_until(lambda: "T" not in states())
    job.process.send_signal(signal.SIGTERM)
    assert job.finish(10)[0] == 143


def test_time_limit(start):
    begin = time.monotonic()
    code, _, err = run(start, "-timeout", "0.5", "-n", "2", "sleep", "60")
    assert code == 124 and "-timeout" in err and time.monotonic() - begin < 4


def test_closed_output(start):
    job = start("-n", "2", "yes")
    job.process.stdout.readline()
    job.process.stdout.close()
    assert job.process.wait(10) == 141 and job.process.stderr.read() == b""


# What each part starts, so that killing any of them can be checked to leave nothing (the mark fixture looks for it).
FAMILY = "setsid sleep 71 & echo up; exec sleep 72"


@pytest.mark.parametrize("victim", ["mpiexec", "motetd", "motet-spawner"])
def test_kill_of_any_part_ends_everything(start, victim):
    job = start("-n", "2", "sh", "-c", FAMILY)
    assert [job.process.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
    tree = job.tree()
    everyone = [pid for pids in tree.values() for pid in pids]
    pid = job.process.pid if victim == "mpiexec" else tree[victim][0]
    os.kill(pid, signal.SIGKILL)
    code = job.process.wait(10)
    assert code == -9 if victim == "mpiexec" else code not in (0, None)
    assert wait_until(lambda: not any(map(alive, everyone))), [p for p in everyone if alive(p)]


def test_children_in_the_background_end_with_the_job(start):
    begin = time.monotonic()
    code, out, _ = run(start, "-n", "2", "sh", "-c", "sleep 73 & setsid sleep 74 & echo done")
    assert code == 0 and out == "done\ndone\n" and time.monotonic() - begin < 8


def status_socket(job):
    """From what mpiexec -v says."""
    while True:
        line = job.process.stderr.readline().decode()
        assert line, "mpiexec ended"
        if "status socket" in line:
            return line.rsplit(" ", 1)[1].strip()


def ctl(path, *args):
    done = subprocess.run([program("launcher/motetctl"), "-s", path, *args], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_motetctl_looks_into_a_job(start):
    job = start("-v", "-n", "2", "sh", "-c", "echo up; exec sleep 60")
    path = status_socket(job)
    assert [job.process.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
    (row,) = json.loads(ctl(path, "--json", "jobs"))
    assert row["name"] == "sh" and row["ranks"] == 2

    def rank():
        (only,) = json.loads(ctl(path, "--json", "ranks", "-j", row["job"], "-r", "1"))
        return only

    # Its output may be here before the spawner's word of its process is at the daemon.
    assert wait_until(lambda: rank()["pid"] != 0) and alive(rank()["pid"])
    for view in [view.name for view in status_views.read().views] + ["all"]:
        assert ctl(path, view)
    assert "spin" in ctl(path, "set", "wait_mode", "spin", "-j", row["job"])
    job.process.send_signal(signal.SIGTERM)
    assert job.finish(10)[0] == 143


def test_motetctl_kills_a_job(start):
    job = start("-v", "-n", "2", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done")
    path = status_socket(job)
    job.process.stdout.readline()
    (row,) = json.loads(ctl(path, "--json", "jobs"))
    assert "ending" in ctl(path, "kill", row["job"])
    code, _, err = job.finish(10)
    assert code == 137 and "mpiexec: the job was ended with motetctl\n" in err
