# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of one node that meet: ports, names, a socket; and what is refused."""
import os

import pytest
from conftest import LIMIT_S, program


@pytest.fixture(scope="module")
def connected():
    return program("tests/dynamic/connected")


@pytest.fixture
def shared(node):
    if node.kind == "private":
        pytest.skip("jobs of private daemons cannot connect")
    return node


def ended(job):
    out, err = job.communicate(timeout=LIMIT_S)
    return job.returncode, out, err


def test_within_a_job(node, connected):
    assert node.run("-n", 2, connected, "within") == (0, "met\n", "")


@pytest.mark.parametrize("n_server, n_visitor", [(1, 1), (3, 2)])
def test_port(shared, connected, tmp_path, n_server, n_visitor):
    server = shared.start("-n", n_server, connected, "serve", tmp_path / "port", 3)
    visitors = [shared.start("-n", n_visitor, connected, "visit", tmp_path / "port") for _ in range(3)]
    assert [ended(visitor) for visitor in visitors] == [(0, "visited\n", "")] * 3
    assert ended(server) == (0, "served\n", "")


def test_name(shared, connected):
    visitor = shared.start("-n", 2, connected, "lookup", "the service")
    assert shared.run("-n", 1, connected, "publish", "the service", 1) == (0, "served\n", "")
    assert ended(visitor) == (0, "visited\n", "")
    assert shared.run("-n", 1, connected, "publish", "the service", 0) == (0, "served\n", "")  # it was taken back


def test_server_that_is_gone(shared, connected, tmp_path):
    """A visitor whom nobody accepts hears that the port's job is over."""
    server = shared.start("-n", 1, connected, "serve", tmp_path / "port", 1)
    while not os.path.exists(tmp_path / "port"):
        assert server.poll() is None
    server.kill()
    server.communicate()
    code, _, err = shared.run("-n", 1, connected, "visit", tmp_path / "port")
    assert code != 0 and "MPI_Comm_connect" in err and ("no such port" in err or "is over" in err)


def test_refusals(shared, connected, tmp_path):
    server = shared.start("-n", 1, connected, "serve", tmp_path / "port", 1)
    code, out, err = shared.run("-n", 1, connected, "wrong", tmp_path / "port")
    assert (code, err) == (0, "")
    said = dict(line.split(": ", 1) for line in out.splitlines())
    assert "WRONG" not in out and len(said) == 14, out
    for what, words in {"accept": "another job", "close": "another job", "guess": "no such port", "short": "no such port", "far": "on node elsewhere",
                        "rubbish": "MPI_Open_port", "timeout": "within the timeout", "closed": "closed", "lookup": "not published",
                        "publish": "already"}.items():
        assert words in said[what], said[what]
    # The job that was attacked does not notice.
    assert shared.run("-n", 1, connected, "visit", tmp_path / "port") == (0, "visited\n", "")
    assert ended(server) == (0, "served\n", "")
