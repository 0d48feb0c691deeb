# SPDX-License-Identifier: BSD-3-Clause
"""Spawned jobs of one node: how they begin, fail and end, and that nothing stays."""
import json
import os
import re
import signal

import pytest
from conftest import program, wait_until


@pytest.fixture(scope="module")
def spawned():
    return program("tests/dynamic/spawned")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Programs that cannot be started or do not become MPI processes."""
    path = tmp_path_factory.mktemp("programs")
    for name, text, mode in (("plain", "no program", 0o644), ("three", "#!/bin/sh\nexit 3\n", 0o755),
                             ("killed", "#!/bin/sh\nkill -9 $$\n", 0o755), ("nothing", "#!/bin/sh\n", 0o755)):
        (path / name).write_text(text)
        os.chmod(path / name, mode)
    return path


def test_chapter(node):
    for n in (1, 3):
        assert node.run("-n", n, program("tests/dynamic/mpi_spawn")) == (0, "spawn: no errors\n", "")


@pytest.mark.parametrize("what, words, options", [
    ("no-such-program", ["No such file or directory"], []),
    ("plain", ["Permission denied"], []),
    ("three", ["exited with code 3"], []),
    ("killed", ["signal 9"], []),
    ("nothing", ["ended without calling MPI_Init"], []),
    ("nothing", ["/no/such/folder", "No such file or directory"], ["wdir", "/no/such/folder"]),
    ("nothing", ["no-such-node"], ["host", "no-such-node"]),
    ("nothing", ["host"], ["host", "a:b"]),
    ("nothing", ["soft"], ["soft", "7:9"]),
    ("nothing", ["sparc"], ["arch", "sparc"]),
])
def test_failure_is_the_spawners_to_judge(node, spawned, folder, what, words, options):
    code, out, err = node.run("-n", 2, spawned, "try", folder / what, 2, *options)
    assert (code, err) == (0, ""), err
    lines = out.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1]
    assert lines[0].startswith("class spawn codes spawn spawn text "), lines[0]
    for word in words:
        assert word in lines[0]
    if not options:  # program, node and reason
        assert f"'{what}'" in lines[0] and ("on node" in lines[0] or what == "nothing")


def test_what_children_get(node, spawned, tmp_path):
    code, out, err = node.run("-n", 1, spawned, "with", "tell", 2, "wdir", tmp_path, env={"CHILD": "1"})
    assert (code, err) == (0, "")
    assert out == f"2 children: good good; argc 4 'two words' '' in {tmp_path} app 0 MARK set\n"


def test_path(node, spawned, tmp_path):
    os.symlink(spawned, tmp_path / "hidden-program")
    code, out, _ = node.run("-n", 1, spawned, "try", "hidden-program", 1)
    assert code == 0 and "No such file" in out
    os.symlink("/bin/true", tmp_path / "other-program")
    code, out, _ = node.run("-n", 1, spawned, "try", "other-program", 1, "path", f"/nowhere:{tmp_path}")
    assert code == 0 and "ended without calling MPI_Init" in out


@pytest.mark.parametrize("soft, n", [("1:3", 3), ("2", 2), ("1:9:2", 3), ("4,1", 4), ("0:4:2", 4)])
def test_soft(node, spawned, soft, n):
    code, out, err = node.run("-n", 2, spawned, "with", "tell", 4, "soft", soft, "host", "localhost")
    assert (code, err) == (0, "")
    assert out.startswith(f"{n} children:" + " good" * n + " spawn" * (4 - n) + ";") and len(out.splitlines()) == 2


def test_child_that_dies_takes_the_parent_with_it(node, spawned):
    code, _, err = node.run("-n", 2, spawned, "with", "die", 2)
    assert code == 128 + signal.SIGKILL and "rank 1" in err and "signal 9" in err and "'spawned'" in err


def test_abort_ends_both(node, spawned):
    code, _, err = node.run("-n", 1, spawned, "with", "abort", 2)
    assert code == 9 and "MPI_Abort(MPI_COMM_WORLD, 9)" in err
    code, _, err = node.run("-n", 1, spawned, "abort")
    assert code == 5 and "MPI_Abort(MPI_COMM_WORLD, 5)" in err


def test_parent_that_ends_without_finalizing(node, spawned):
    code, _, err = node.run("-n", 1, spawned, "exit")
    assert code == 4 and "without calling MPI_Finalize" in err


def test_parent_that_dies_while_it_waits_for_children(node, spawned):
    code, _, err = node.run("-n", 1, spawned, "early")
    assert code == 128 + signal.SIGALRM and "signal 14" in err


def test_after_disconnect_jobs_are_alone(node, spawned):
    code, out, err = node.run("-n", 1, spawned, "with", "outlive", 2)
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == ["2 children: good good; good-bye", "child 0 of 2 is done", "child 1 of 2 is done"]
    code, out, err = node.run("-n", 1, spawned, "with", "fail-later", 1)
    assert code == 6 and "good-bye" in out and "exited with code 6" in err


def test_signals_reach_children(node, spawned):
    job = node.start("-n", 1, spawned, "wait")
    assert job.stdout.readline() == "both wait\n"
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=50)
    assert job.returncode == 128 + signal.SIGINT, err
    job = node.start("-n", 1, spawned, "wait")
    assert job.stdout.readline() == "both wait\n"
    job.kill()
    job.communicate()
    assert wait_until(lambda: not node.ranks()), "ranks outlive their mpiexec"


def test_split_of_both_jobs_together(node, spawned):
    code, out, err = node.run("-n", 2, spawned, "split")
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == ["first: 2 share memory, its own job"] * 2 + ["other: 2 share memory, its own job"] * 2


def test_nothing_stays(node, spawned):
    if node.kind == "private":
        pytest.skip("the daemon goes with the job")

    def held():
        with open(f"/proc/{node.daemon.pid}/status", encoding="ascii") as f:
            memory = int(re.search(r"RssAnon:\s+(\d+)", f.read())[1])
        with open(f"/proc/{node.daemon.pid}/maps", encoding="ascii") as f:
            segments = sum("memfd:" in line for line in f)
        return len(os.listdir(f"/proc/{node.daemon.pid}/fd")), segments, memory

    def many(n):
        assert node.run("-n", 1, program("tests/dynamic/mpi_spawn"), n)[0] == 0
        assert node.run("-n", 1, spawned, "with", "fail-later", 1)[0] == 6
        assert wait_until(lambda: json.loads(node.motetctl("--json", "jobs").stdout) == [])

    many(20)
    files, segments, memory = held()
    many(20)  # four spawned jobs each
    # The last question may not be let go yet.
    assert wait_until(lambda: held()[0] <= files and held()[1] <= segments), held()
    assert held()[2] < memory + 2048
