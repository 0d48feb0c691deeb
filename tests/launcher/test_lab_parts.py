# SPDX-License-Identifier: BSD-3-Clause
"""What motet-lab is made of, as far as it needs no namespaces: lab files, addresses, configurations, the drawing, its sockets."""
import json
import os
import socket
import sys
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "launcher", "lab"))
from motet_lab import client, cluster, drawing, limits, node, status, wiring

THREE = """
[lab]
name = borders
[network left]
rate = 1gbit
delay = 200us
loss = 0.1%
nodes = a1, a2 gw
[network right]   # the other side
provider = udp
mtu = 9000
nodes = gw b1
[network far]
rate = 10mbps
nodes = c1
[motetd]
mesh.heartbeat = 100ms
log_level = debug
[node gw]
transport.blocks_per_channel = 256
mesh.heartbeat = 50ms
"""


def read(tmp_path, text):
    path = tmp_path / "some.lab"
    path.write_text(text)
    return cluster.read(str(path))


def test_a_file_becomes_networks_and_nodes(tmp_path):
    plan = read(tmp_path, THREE)
    assert plan.name == "borders" and plan.congestion == "cubic"
    assert [n.name for n in plan.nodes] == ["a1", "a2", "gw", "b1", "c1"]
    left, right, far = plan.networks
    assert [n.name for n in left.nodes] == ["a1", "a2", "gw"] and right.nodes == [plan.node("gw"), plan.node("b1")]
    assert left.address(plan.node("gw")) == "10.1.0.3" and right.address(plan.node("gw")) == "10.2.0.3"
    assert left.bytes_per_second() == 125_000_000 and far.bytes_per_second() == 10_000_000
    assert left.describe() == "tcp, 1gbit, mtu 1500, delay 200us, loss 0.1%" and right.describe() == "udp, unshaped, mtu 9000"
    assert plan.network("nowhere") is None and plan.node("nobody") is None
    assert wiring.port_name(right, plan.node("b1")) == "port2.4" and wiring.bridge_name(far) == "net3"


def test_who_reaches_whom(tmp_path):
    plan = read(tmp_path, THREE)
    assert plan.reachable() == {"a1": {"a2", "gw", "b1"}, "a2": {"a1", "gw", "b1"}, "gw": {"a1", "a2", "b1"},
                                "b1": {"a1", "a2", "gw"}, "c1": set()}


def test_a_node_gets_its_configuration(tmp_path):
    plan = read(tmp_path, THREE)
    text = node.motetd_conf(plan, plan.node("gw"))
    left = text.split("[channel left]\n")[1].split("\n\n")[0].split("\n")
    assert left == ["interface = left", "network = left", "provider = tcp", "mbytes_per_s = 125", "seeds = 10.1.0.1, 10.1.0.2"]
    assert "[mesh]\nheartbeat = 50ms\n" in text and "log_level = debug\n" in text and "blocks_per_channel = 256" in text
    assert "heartbeat = 100ms" in node.motetd_conf(plan, plan.node("a1"))
    assert "seeds" not in node.motetd_conf(plan, plan.node("c1"))


def test_few_seeds_of_many_nodes(tmp_path):
    plan = read(tmp_path, "[network x]\nnodes = " + " ".join(f"n{i}" for i in range(1, 31)))
    assert node.motetd_conf(plan, plan.node("n1")).count("10.1.0.") == node.MAX_SEEDS
    assert "10.1.0.1," not in node.motetd_conf(plan, plan.node("n1"))


def test_the_drawing(tmp_path):
    plan = read(tmp_path, "[network left]\nnodes = a gw\n[network mid]\nnodes = a b\n[network right]\nnodes = gw b\n")
    assert drawing.draw(plan).split("\n") == [
        "            a    gw     b",
        "            |     |     |",
        "  left      o-----o     |    tcp, unshaped, mtu 1500",
        "            |     |     |",
        "  mid       o-----|-----o    tcp, unshaped, mtu 1500",
        "                  |     |",
        "  right           o-----o    tcp, unshaped, mtu 1500"]
    cut = drawing.draw(plan, cuts={("gw", "right")}, dead=["b"]).split("\n")
    assert "(b)" in cut[0] and cut[-1].split()[1] == "x-----o"


@pytest.mark.parametrize("text, complaint", [
    ("[network x]\nnodes = a\nrate = 1\n", ":3: rate = 1: expected a number with unit"),
    ("[network x]\nnodes = a\nmtu = 575\n", ":3: mtu = 575"),
    ("[network x]\nnodes = a\nmtu = 65522\n", ":3: mtu = 65522"),
    ("[network x]\nnodes = a\ndelay = 5\n", ":3: delay = 5: expected a time with unit"),
    ("[network x]\nnodes = a\nloss = 5\n", ":3: loss = 5: expected a percentage"),
    ("[network x]\nnodes = a/b\n", ':2: "a/b" is no name for a node'),
    ("[network x]\nnodes = a_name_of_13_\n", "is no name for a node"),
    ("[lab]\ncolour = red\n", ':2: unknown key "colour": [lab] knows name'),
    ("[node]\n", ":1: expected [node NAME]"),
    ("[network x]\nnodes = a\n[node b]\nk = v\n", ":4: node b is on no network"),
    ("[network x]\nnodes = " + " ".join(f"n{i}" for i in range(251)), "more than 250 nodes"),
    ("\n".join(f"[network n{i}]\nnodes = a" for i in range(251)), "more than 250 networks"),
])
def test_what_is_wrong_is_told_with_its_line(tmp_path, text, complaint):
    with pytest.raises(cluster.LabFileError) as caught:
        read(tmp_path, text)
    assert complaint in str(caught.value)


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(cluster.LabFileError, match="No such file"):
        cluster.read(str(tmp_path / "none.lab"))
    (tmp_path / "binary.lab").write_bytes(b"\xff\xfe")
    with pytest.raises(cluster.LabFileError, match=r"binary.lab"):
        cluster.read(str(tmp_path / "binary.lab"))


# ---- sockets ----

def answering(path, answer):
    """A socket that takes one connection, sends `answer` for its line and closes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)

    def serve():
        connection, _ = listener.accept()
        with listener, connection:
            connection.recv(4096)
            connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("answer, names, complaint", [
    (json.dumps({"ok": True, "data": [{"to": "a", "reachable": True}, {"to": "b", "reachable": False}]}).encode() + b"\n", {"a"}, None),
    (b'{"ok":false,"error":{"code":"denied"}}\n', set(), "denied"),
    (b'{"ok":true,"data":[{"to":"a"', set(), "closed the status socket"),
    (b'{"ok":true,"data":[{"to":"a"}]}\n', set(), "reachable"),
    (b"rubbish\n", set(), "status socket"),
])
def test_which_nodes_a_daemon_reaches(tmp_path, answer, names, complaint):
    thread = answering(str(tmp_path / "status.sock"), answer)
    reached, wrong = status.reached_nodes(str(tmp_path))
    thread.join(10)
    assert reached == names and (complaint is None) == (wrong is None) and (complaint or "") in (wrong or "")


def test_a_daemon_that_is_not_there_yet(tmp_path):
    assert status.reached_nodes(str(tmp_path)) == (set(), "no status socket yet")


@pytest.fixture
def lab():
    """The socket of a lab of this name, as its holder has it."""
    name = f"parts-{os.getpid()}"
    listener = client.listen(name)
    yield name, listener
    listener.close()


def test_labs_are_found_by_their_sockets(lab, monkeypatch):
    name, _ = lab
    monkeypatch.delenv("MOTET_LAB", raising=False)
    assert name in client.running() and client.choose(name) == name
    with pytest.raises(client.LabError, match="is up already"):
        client.listen(name)
    monkeypatch.setenv("MOTET_LAB", name)
    assert client.choose(None) == name
    with pytest.raises(client.LabError, match="lab other is not up"):
        client.choose("other")
    for wrong in ("", "a b", "x" * 41):
        with pytest.raises(client.LabError, match="is no name for a lab"):
            client.listen(wrong)


@pytest.mark.parametrize("running, complaint", [([], "no lab is up"), (["a", "b"], "several labs are up")])
def test_a_lab_is_chosen_only_if_there_is_one(monkeypatch, running, complaint):
    monkeypatch.delenv("MOTET_LAB", raising=False)
    monkeypatch.setattr(client, "running", lambda: running)
    with pytest.raises(client.LabError, match=complaint):
        client.choose(None)
    monkeypatch.setattr(client, "running", lambda: ["only"])
    assert client.choose(None) == "only"


@pytest.mark.parametrize("answer, result, complaint", [
    (b'{"ok":true,"drawing":"o-o"}\n', {"drawing": "o-o"}, None),
    (b'{"ok":false,"error":"no such node"}\n', None, "no such node"),
    (b"", None, "went down"),
])
def test_a_lab_is_asked(lab, answer, result, complaint):
    name, listener = lab

    def serve():
        connection, _ = listener.accept()
        with connection:
            asked.append(json.loads(connection.recv(4096)))
            connection.sendall(answer)

    asked = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    if complaint:
        with pytest.raises(client.LabError, match=complaint):
            client.ask(name, "cut", node="a")
    else:
        assert client.ask(name, "cut", node="a") == (result, [])
    thread.join(10)
    assert asked == [{"do": "cut", "node": "a"}]


def test_a_lab_that_is_not_up_says_so():
    with pytest.raises(client.LabError, match="lab nothing-here"):
        client.ask("nothing-here", "status")


def sysctls(tmp_path, **values):
    for name, value in values.items():
        (tmp_path / name).write_text(f"{value}\n")
    return str(tmp_path)


def many(tmp_path, n):
    return read(tmp_path, "[network big]\nnodes = " + " ".join(f"n{i}" for i in range(n)))


def test_neighbour_tables_are_raised_where_a_lab_needs_more(tmp_path):
    few, lot = read(tmp_path, THREE), many(tmp_path, 100)
    assert limits.neighbours_needed(few) == 3 * 2 + 2 and limits.neighbours_needed(lot) == 9900
    folder = sysctls(tmp_path, gc_thresh3=2048, gc_thresh2=8000)
    assert limits.raise_neighbours(few, folder) is None
    assert "from 2048 to 10924" in limits.raise_neighbours(lot, folder)
    assert (tmp_path / "gc_thresh3").read_text() == "10924" and (tmp_path / "gc_thresh2").read_text() == "8000\n"
    assert limits.raise_neighbours(lot, sysctls(tmp_path, gc_thresh3=20000, gc_thresh2=8000)) is None


def test_a_limit_that_cannot_be_raised_is_named(tmp_path):
    note = limits.raise_neighbours(many(tmp_path, 100), str(tmp_path / "nowhere"))
    assert "10924 neighbour entries" in note and "gc_thresh3=10924" in note
    assert limits.raise_neighbours(read(tmp_path, "[network one]\nnodes = a"), str(tmp_path / "nowhere")) is None


def test_overflows_of_the_neighbour_table_are_counted(tmp_path):
    path = tmp_path / "arp_cache"
    path.write_text("entries  allocs   table_fulls\n00000001 00000a96 0000000a\n00000001 00000f52 00000010\n")
    assert limits.overflows(str(path)) == 26 and limits.overflows(str(tmp_path / "nowhere")) == 0
