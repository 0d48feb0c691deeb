# SPDX-License-Identifier: BSD-3-Clause
"""motetctl against a status socket that this test answers."""
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from conftest import program


class Daemon:
    """Answers every request line with what `answer` makes of it."""

    def __init__(self, name, answer):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(name)
        self.listener.listen(5)
        self.listener.settimeout(10)
        self.answer = answer
        self.requests = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            while True:
                connection, _ = self.listener.accept()
                with connection, connection.makefile("rwb") as f:
                    for line in f:
                        self.requests.append(json.loads(line))
                        reply = self.answer(self.requests[-1])
                        if reply is None:
                            break
                        f.write(reply if isinstance(reply, bytes) else json.dumps(reply).encode() + b"\n")
                        f.flush()
        except OSError:
            pass

    def close(self):
        # shutdown wakes the accept of the other thread; close alone would not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


def reply(data):
    return lambda request: {"version": 1, "id": request["id"], "ok": True, "data": data}


@pytest.fixture
def daemon(tmp_path):
    daemons = []

    def begin(answer, name=None):
        path = name or str(tmp_path / f"status{len(daemons)}.sock")
        daemons.append(Daemon(path, answer))
        daemons[-1].path = path
        return daemons[-1]

    yield begin
    for d in daemons:
        d.close()


def ctl(*args, env=None, limit=15):
    return subprocess.run([program("launcher/motetctl"), *args], capture_output=True, text=True, timeout=limit, check=False,
                          env={"PATH": os.environ["PATH"], **(env or {})})


def show(daemon, data, *args):
    d = daemon(reply(data))
    done = ctl("-s", d.path, *(args or ["queues"]))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def test_table_has_every_column_and_units(daemon):
    text = show(daemon, [
        {"node": "n1", "rank": 3, "bytes": 1536, "age_ns": 2_500_000_000, "rtt_us": 40, "up": True, "peers": ["a", "b"]},
        {"node": "node-with-long-name", "rank": 12, "bytes": 7, "age_ns": 90_000_000_000, "extra": {"deep": None}},
    ])
    heading, first, second = text.splitlines()
    assert heading.split() == ["NODE", "RANK", "BYTES", "AGE", "RTT", "UP", "PEERS", "DEEP"]
    assert first.split("  ")[0].strip() == "n1"
    for part in ("1.50 KiB", "2.50 s", "40.0 us", "yes", "a,b"):
        assert part in first
    for part in ("7 B", "1 min 30 s", " - "):
        assert part.strip() in second
    # Numbers stand right-aligned under their heading.
    assert heading.index("RANK") + 4 == first.index("3", heading.index("RANK")) + 1 == second.index("12") + 2


def test_wide_and_low_tables_are_turned(daemon):
    row = {f"a_counter_{i}": i * 1000 for i in range(20)}
    lines = show(daemon, [dict(row, channel="left"), dict(row, channel="right")], "counters").splitlines()
    assert lines[0].split() == ["A", "COUNTER", "0", "0", "0"] and lines[-1].split() == ["CHANNEL", "left", "right"]
    assert len(lines) == 21


def test_nested_values(daemon):
    text = show(daemon, [{"to": "n2", "quick": {"next": "n3", "cost_us": 1500}, "slow": {"next": None},
                          "wide": [{"via": "a", "rtt_us": 20}, {"via": "b", "rtt_us": 30}]}], "routes")
    heading, row = text.splitlines()
    assert heading.split() == ["TO", "QUICK.NEXT", "COST", "SLOW.NEXT", "WIDE"]
    assert row.split("  ")[-1] == "via=a rtt=20.0 us, via=b rtt=30.0 us" and "1.50 ms" in row


def test_headings_stay_apart(daemon):
    heading, _ = show(daemon, [{"waiting": True, "waiting_ms": 1500}]).splitlines()
    assert heading.split("  ") == ["WAITING", "WAITING TIME"]


def test_tables_within_a_table(daemon):
    text = show(daemon, [{"subject": "nodes", "node": "n1", "rows": [{"a": 1}]}, {"subject": "jobs", "node": "n1", "rows": []}], "all")
    assert text == "subject nodes, node n1:\nA\n1\n\nsubject jobs, node n1:\nnone\n\n"


def test_object_is_a_list(daemon):
    assert show(daemon, {"version": "0.1.0", "node": "n1"}, "nodes").split() == ["VERSION", "0.1.0", "NODE", "n1"]


def test_nothing_to_show(daemon):
    assert show(daemon, []) == "none\n"


def test_control_characters_do_not_reach_the_terminal(daemon):
    assert "\x1b" not in show(daemon, [{"name": "a\x1b[2Jb\nc"}])


def test_json_is_the_data_as_it_came(daemon):
    data = [{"b": 1, "a": {"x": [1, None, 2.5]}, "bytes": 10**15}]
    assert json.loads(show(daemon, data, "--json", "jobs")) == data


@pytest.mark.parametrize("args, request_", [
    (["queues", "--job", "00ab", "-r", "3", "--node", "n2"], {"get": "queues", "job": "00ab", "rank": 3, "node": "n2"}),
    (["set", "wait_mode", "spin", "-j", "1"], {"set": "wait_mode", "value": "spin", "job": "1"}),
    (["set", "wait_mode", "event", "-c", "left"], {"set": "wait_mode", "value": "event", "channel": "left"}),
    (["ranks", "--limit", "12"], {"get": "ranks", "limit": 12}),
    (["kill", "00ab"], {"set": "kill", "value": "the job was ended with motetctl", "job": "00ab"}),
])
def test_requests(daemon, args, request_):
    d = daemon(reply([]))
    assert ctl("-s", d.path, *args).returncode == 0
    assert d.requests == [dict(request_, id=1)]


def test_gaps_are_told(daemon):
    d = daemon(lambda r: {"version": 1, "id": r["id"], "ok": True, "data": [{"a": 1}], "truncated": True,
                          "errors": [{"node": "n2", "code": "no_answer", "message": "no answer within 2 s"},
                                     {"node": "n3", "code": "denied", "message": "not for you"}]})
    done = ctl("-s", d.path, "ranks")
    assert (done.returncode, done.stdout) == (0, "A\n1\n")
    assert done.stderr == "motetctl: node n2: no answer within 2 s; node n3: not for you; there are more rows (see --limit)\n"


def rank_row(rank, **more):
    return {"job": "00000000000000a1", "rank": rank, "node": "n1", "state": "running", "process": "sleeping", "mpi": "attached",
            "waiting": True, "sent_messages": 1, "received_messages": 1, "sent_bytes": 8, "received_bytes": 8, **more}


def entry(rank, queue, peer, tag, **more):
    return {"job": "00000000000000a1", "rank": rank, "node": "n1", "queue": queue, "communicator": 0, "collective": False,
            "peer": peer, "peer_world": peer if isinstance(peer, int) else None, "tag": tag, "bytes": 8, "done_bytes": 0,
            "age_ms": 5000, **more}


def waits(daemon, ranks, queues, later=None, communicators=()):
    """What `motetctl --json waits` makes of these rows: the one job."""
    asked = []

    def answer(request):
        asked.append(request["get"])
        data = {"links": [], "queues": queues, "communicators": list(communicators), "ranks": later if later and asked.count("ranks") > 1 else ranks}
        return {"version": 1, "id": request["id"], "ok": True, "data": data[request["get"]]}

    d = daemon(answer)
    done = ctl("-s", d.path, "-J", "waits")
    assert (done.returncode, done.stderr) == (0, ""), done
    people = ctl("-s", d.path, "waits")
    assert people.returncode == 0 and people.stdout.startswith("job 00000000000000a1: ")
    job, = json.loads(done.stdout)
    return job


def kinds(job):
    return [(finding["kind"], finding["ranks"]) for finding in job["findings"]]


def test_waits_two_for_each_other(daemon):
    job = waits(daemon, [rank_row(0), rank_row(1), rank_row(2, waiting=False)],
                [entry(0, "posted", 1, 7), entry(1, "rendezvous_out", 0, 9)])
    assert kinds(job) == [("deadlock", [0, 1])]
    assert job["findings"][0]["text"] == "rank 0 waits for rank 1 (receive, tag 7), rank 1 waits for rank 0 (announced send, tag 9)"
    assert job["of_them"] == {"computing": 1, "waiting": 2, "stopped": 0, "out of MPI": 0, "ended": 0, "unseen": 0}


def test_waits_ring_of_many_with_a_tail(daemon):
    n = 200
    job = waits(daemon, [rank_row(r) for r in range(n + 2)],
                [entry(r, "posted", (r + 1) % n, 1) for r in range(n)] + [entry(n, "posted", 3, 1), entry(n + 1, "posted", n, 1)])
    assert kinds(job) == [("deadlock", list(range(n))), ("stuck", [n, n + 1])]
    assert "and so on" in job["findings"][0]["text"] and len(job["waits"]) == n + 2


def test_waits_that_can_end_are_no_deadlock(daemon):
    """A chain that ends in a rank that computes; one that waits for anybody; a circle with a way out."""
    job = waits(daemon, [rank_row(0), rank_row(1), rank_row(2, waiting=False), rank_row(3)],
                [entry(0, "posted", 1, 1), entry(1, "posted", 2, 1), entry(3, "posted", "any", "any")])
    assert kinds(job) == [("computing", [2, 1])]
    assert "rank 2 computes, and rank 1 waits for it: rank 1 is in MPI, receive from rank 2, tag 1" == job["findings"][0]["text"]
    job = waits(daemon, [rank_row(0), rank_row(1), rank_row(2, waiting=False)],
                [entry(0, "posted", 1, 1), entry(1, "posted", 0, 1), entry(1, "posted", 2, 1)])
    assert kinds(job) == [("circle", [0, 1]), ("computing", [2, 1])]


def test_waits_for_anybody_when_nobody_is_left(daemon):
    job = waits(daemon, [rank_row(0), rank_row(1, mpi="finalized", waiting=False), rank_row(2, state="exited", waiting=False)],
                [entry(0, "posted", "any", "any")])
    assert kinds(job) == [("stuck", [0])]
    job = waits(daemon, [rank_row(0), rank_row(1, mpi="finalized", waiting=False)], [entry(0, "posted", 1, 3)])
    assert kinds(job) == [("stuck", [0]), ("gone", [0, 1])] and "has called MPI_Finalize" in job["findings"][1]["text"]


def test_waits_who_moves_does_not_hang(daemon):
    queues = [entry(0, "posted", 1, 1), entry(1, "posted", 0, 1)]
    job = waits(daemon, [rank_row(0), rank_row(1)], queues, later=[rank_row(0), rank_row(1, received_messages=2)])
    assert kinds(job) == []
    # One of the two looks found it awake.
    job = waits(daemon, [rank_row(0), rank_row(1, waiting=False)], queues, later=[rank_row(0, waiting=False), rank_row(1)])
    assert kinds(job) == [("deadlock", [0, 1])]
    # Young requests are ordinary.
    job = waits(daemon, [rank_row(0), rank_row(1)], [dict(row, age_ms=10) for row in queues])
    assert kinds(job) == [] and job["waits"] == []


@pytest.mark.parametrize("message, kind, text", [
    (dict(tag=9), "mismatch", "a message with another tag: tag 9 from rank 1 in MPI_COMM_WORLD, 8 B"),
    (dict(tag=7, communicator=4), "mismatch", "a message in another communicator: tag 7 from rank 1 in communicator 4"),
    (dict(tag=7, peer=2), "mismatch", "a message from another rank: tag 7 from rank 2 in MPI_COMM_WORLD"),
    (dict(tag=1, collective=True), "mismatch", "lies a message of a collective operation: it has gone on to that"),
    (dict(tag=9, peer=2), None, ""),
])
def test_waits_with_a_message_that_nearly_fits(daemon, message, kind, text):
    one = entry(0, "unexpected", message.pop("peer", 1), message.pop("tag"), **message)
    job = waits(daemon, [rank_row(0), rank_row(1, waiting=False), rank_row(2, waiting=False)], [entry(0, "posted", 1, 7), one])
    assert [finding["kind"] for finding in job["findings"]] == ([kind] if kind else []) + ["computing"]
    assert not kind or text in job["findings"][0]["text"], job


def test_waits_in_different_collectives(daemon):
    job = waits(daemon, [rank_row(0), rank_row(1)],
                [entry(0, "posted", 1, 1, collective=True), entry(0, "unexpected", 1, 5, collective=True),
                 entry(1, "posted", 0, 5, collective=True)])
    assert kinds(job) == [("deadlock", [0, 1]), ("collective", [0, 1])]


def call(rank, function, sequence=None, form="blocking", queue="call", **more):
    inside = sequence is not None
    return {"job": "00000000000000a1", "rank": rank, "node": "n1", "queue": queue, "call": function, "collective": inside,
            "communicator": 8 if inside else None, "communicator_name": "rows" if inside else None, "members": 4 if inside else None,
            "form": form if inside else None, "sequence": sequence, "thread": 100 + rank, "age_ms": 5000, **more}


def member(rank, count=0, last="", form="blocking", leader=0):
    entered = {each: {"count": 0, "last": ""} for each in ("blocking", "nonblocking", "persistent")} | {form: {"count": count, "last": last}}
    return {"job": "00000000000000a1", "rank": rank, "node": "n1", "communicator": 8, "communicator_name": "rows", "leader_world": leader,
            "rank_in_it": rank, "members": 4, "between_groups": False, "entered": entered}


def test_waits_names_who_has_not_come_to_a_collective(daemon):
    """Of four ranks two wait; one computes, one receives from the first: what it does is told, and the deadlock behind it."""
    ranks = [rank_row(0), rank_row(1), rank_row(2, waiting=False, process="running"), rank_row(3)]
    queues = [call(0, "MPI_Barrier", 17), entry(0, "posted", 2, 17, communicator=8, collective=True),
              call(1, "MPI_Barrier", 17), entry(1, "posted", 0, 17, communicator=8, collective=True),
              call(3, "MPI_Recv"), entry(3, "posted", 0, 7)]
    job = waits(daemon, ranks, queues, communicators=[member(0, 17), member(1, 17), member(2, 16), member(3, 15)])
    assert kinds(job) == [("absent", [2, 3])]
    assert job["findings"][0]["text"] == (
        "ranks 2, 3 have not entered MPI_Barrier on communicator 8 (rows) (4 ranks), in which ranks 0, 1 wait, the first for 5.00 s: "
        "rank 2 computes, rank 3 is in MPI_Recv, receive from rank 0, tag 7")
    # Disjoint communicators may have one context id.
    job = waits(daemon, ranks, queues, communicators=[member(0, 17), member(1, 17), member(2, 17), member(3, 15, leader=2)])
    assert kinds(job) == []
    # The count goes round.
    queues[0]["sequence"] = queues[2]["sequence"] = 2
    job = waits(daemon, ranks, queues, communicators=[member(0, 2), member(1, 2), member(2, (1 << 24) - 1), member(3, 2)])
    assert kinds(job) == [("absent", [2])]


def test_waits_first_names_who_waits_for_nobody(daemon):
    """Two collectives hang; the one that lacks a stopped rank is behind the other."""
    ranks = [rank_row(0), rank_row(1), rank_row(2, process="stopped")]
    queues = [call(0, "MPI_Barrier", 4), call(1, "MPI_Allreduce", 9, communicator=12)]
    other = dict(member(1, 9), communicator=12), dict(member(2, 8), communicator=12)
    job = waits(daemon, ranks, queues, communicators=[member(0, 4), member(1, 3), *other])
    assert kinds(job) == [("absent", [2]), ("absent", [1])]
    assert job["findings"][0]["text"].endswith("it is stopped by a signal")


def test_waits_for_a_collective_that_runs(daemon):
    """Nonblocking: the call is a wait. Persistent: those whom the others wait for, as counts tell nothing."""
    ranks = [rank_row(0), rank_row(1, waiting=False, process="sleeping", cpu_ms=5), rank_row(2)]
    queues = [call(0, "MPI_Waitall"), call(0, "MPI_Ibarrier", 3, "nonblocking", "running"), call(2, "MPI_Recv"),
              call(2, "MPI_Ibarrier", 3, "nonblocking", "running")]
    job = waits(daemon, ranks, queues, communicators=[member(r, 3 - r % 2, form="nonblocking") for r in range(3)])
    assert kinds(job) == [("absent", [1])]
    assert "has not entered MPI_Ibarrier" in job["findings"][0]["text"] and "in which rank 0 waits" in job["findings"][0]["text"]
    assert job["findings"][0]["text"].endswith("it sleeps outside MPI")
    queues = [call(0, "MPI_Wait"), call(0, "MPI_Barrier_init", 1, "persistent", "running"),
              entry(0, "posted", 1, 2 * (1 << 24) + 1, communicator=8, collective=True)]
    job = waits(daemon, ranks, queues, communicators=[member(r, 1, form="persistent") for r in range(3)])
    assert kinds(job)[0] == ("absent", [1]) and "has not started what was made with MPI_Barrier_init" in job["findings"][0]["text"]


def test_waits_for_ranks_of_a_node_that_does_not_answer(daemon):
    """Nothing is known of them: neither that they are stuck nor that they are missing."""
    job = waits(daemon, [rank_row(0)], [call(0, "MPI_Barrier", 4), entry(0, "posted", 1, 4, communicator=8, collective=True)],
                communicators=[member(0, 4)])
    assert kinds(job) == [("unseen", [0, 1])] and job["of_them"]["unseen"] == 1
    assert job["findings"][0]["text"] == "rank 0 waits for rank 1, which is on a node that does not answer"


def test_waits_in_collectives_of_different_functions(daemon):
    """One rank has called another function, one yet another and gone on. The form with large counts is the same function."""
    ranks = [rank_row(0), rank_row(1), rank_row(2), rank_row(3, waiting=False)]
    queues = [call(0, "MPI_Barrier", 4), call(1, "MPI_Allreduce", 4), call(2, "MPI_Allreduce_c", 4)]
    job = waits(daemon, ranks, queues, communicators=[member(0, 4), member(1, 4), member(2, 4), member(3, 4, "MPI_Reduce")])
    assert kinds(job) == [("collective", [0, 1, 2, 3])]
    assert job["findings"][0]["text"].endswith("(rows) (4 ranks): rank 0 MPI_Barrier, ranks 1, 2 MPI_Allreduce, rank 3 MPI_Reduce")


def test_waits_with_two_threads(daemon):
    """One thread receives, the other is in a barrier: both are told, each entry with its call."""
    job = waits(daemon, [rank_row(0), rank_row(1, waiting=False)],
                [call(0, "MPI_Recv"), call(0, "MPI_Barrier", 2, age_ms=4000), entry(0, "posted", 1, 7),
                 entry(0, "posted", 1, 2, communicator=8, collective=True)], communicators=[member(0, 2), member(1, 1)])
    assert kinds(job) == [("absent", [1]), ("computing", [1, 0])]
    assert "is in MPI_Recv, receive from rank 1, tag 7 and in MPI_Barrier on communicator 8 (rows)" in job["findings"][1]["text"]
    assert [row["call"] for row in job["waits"]] == ["MPI_Recv", "MPI_Barrier"]


def test_waits_of_a_job_that_is_not_there(daemon):
    done = ctl("-s", daemon(reply([])).path, "waits", "12ab")
    assert (done.returncode, done.stderr) == (1, "motetctl: job 12ab has no ranks here, or is not yours\n")


def doctor_row(node, check="daemon", state="ok", **more):
    return {"node": node, "check": check, "state": state, "text": "it runs", "advice": None, **more}


def test_doctor_compares_nodes(daemon):
    now = int(time.time() * 1000)
    rows = [doctor_row("n1", version="motet 1", clock_ms=now), doctor_row("n2", version="motet 1", clock_ms=now)]
    done = ctl("-s", daemon(reply(rows)).path, "doctor")
    assert done.returncode == 0 and done.stdout.splitlines()[-3:] == [
        "ok    *     version  motet 1 on 2 nodes", "ok    *     clock    all within a second", "4 ok, 0 to look at, 0 failed"]
    rows = [doctor_row("n1", version="motet 1", clock_ms=now), doctor_row("n2", version="motet 2", clock_ms=now - 3600000),
            doctor_row("n1", "links", "fail", text="no\x1b[2J link", advice="plug it in")]
    d = daemon(lambda r: {**reply(rows)(r), "errors": [{"node": "n3", "code": "no_answer", "message": "no answer within 2 s"}]})
    done = ctl("-s", d.path, "doctor")
    assert done.returncode == 1 and done.stderr == ""
    assert "\x1b" not in done.stdout and "do: plug it in" in done.stdout
    for line in ("warn  n2    version  motet 2, but node n1 has motet 1", "fail  n3    answer   no answer within 2 s"):
        assert line in done.stdout.splitlines()
    assert "n2    clock    its clock is 1 h 0 min behind this one's" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 ok, 2 to look at, 2 failed"


def metrics_daemon(daemon):
    data = {"info": [{"node": "n1"}],
            "counters": [{"node": "n1", "channel": 0, "name": "a\"b", "counters": {"packets_out": 5, "blocks_free": 7}},
                         {"node": "n1", "channel": 1, "name": "c", "counters": {"packets_out": 6, "blocks_free": 8}},
                         {"node": "n1", "channel": None, "name": "daemon",
                          "counters": {"uptime_ms": 1500, "jobs_here": 1, "jobs_home": 0, "clients": 2, "nodes": 2}}],
            "nodes": [{"node": "n1", "state": "self"}, {"node": "n2", "state": "lost"}],
            "links": [{"from": "n1", "to": "n2", "network": "left", "rtt_us": 120, "both_ways": True, "control": "up"},
                      {"from": "n2", "to": "n1", "network": "left", "rtt_us": 120, "both_ways": True}],
            "ranks": [rank_row(0, waiting_ms=2500), rank_row(1, state="exited")]}
    return daemon(lambda r: reply(data[r["get"]])(r))


def test_metrics(daemon, tmp_path):
    d = metrics_daemon(daemon)
    done = ctl("-s", d.path, "metrics")
    assert (done.returncode, done.stderr) == (0, "")
    assert [r.get("node") for r in d.requests] == [None, "n1", "n1", "n1", "n1"]
    lines = done.stdout.splitlines()
    for line in ('motet_channel_packets_out_total{node="n1",channel="a\\"b"} 5', 'motet_channel_packets_out_total{node="n1",channel="c"} 6',
                 "# TYPE motet_channel_packets_out_total counter", "# TYPE motet_channel_blocks_free gauge",
                 'motet_uptime_seconds{node="n1"} 1.5', 'motet_node_reachable{node="n1",to="n2"} 0',
                 'motet_link_up{node="n1",to="n2",network="left"} 1', 'motet_link_rtt_seconds{node="n1",to="n2",network="left"} 0.000120',
                 'motet_ranks{node="n1"} 1', 'motet_longest_wait_seconds{node="n1"} 2.5'):
        assert line in lines, line
    # The format: each family once, its help and type before its samples, and nothing else.
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(families)) == len(families)
    assert all(line.startswith("# ") or line.split("{")[0] in families for line in lines)
    path = tmp_path / "motet.prom"
    assert ctl("-s", d.path, "metrics", "-o", path).returncode == 0
    assert path.read_text() == done.stdout and os.listdir(tmp_path).count("motet.prom") == 1
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    done = ctl("-s", d.path, "metrics", "-o", "/nowhere/x")
    assert done.returncode == 1 and done.stderr == "motetctl: /nowhere/x: No such file or directory\n"


def test_large_answer(daemon):
    rows = [{"rank": i, "text": "x" * 200} for i in range(20000)]
    d = daemon(reply(rows))
    assert len(ctl("-s", d.path, "ranks").stdout.splitlines()) == 20001


def test_watch_asks_again(daemon):
    count = []

    def answer(request):
        count.append(request["id"])
        return reply([{"n": len(count)}])(request) if len(count) < 4 else None

    d = daemon(answer)
    done = ctl("-s", d.path, "-w", "0.05", "nodes")
    assert count == [1, 2, 3, 4] and done.stdout.count("N\n") == 3
    assert done.returncode == 1 and done.stderr == "motetctl: the daemon closed the connection\n"


@pytest.mark.parametrize("answer, message", [
    (lambda r: {"version": 1, "id": r["id"], "ok": False, "error": "no such job"}, "no such job"),
    (lambda r: {"version": 1, "id": r["id"], "ok": False, "error": {"code": 3, "message": "no"}}, "no"),
    (lambda r: {"version": 2, "ok": True}, "the daemon speaks another version of the status protocol than the 1 of this motetctl"),
    (lambda r: {"version": 1, "id": 99, "ok": True}, "the answer belongs to another request"),
    (lambda r: None, "the daemon closed the connection"),
])
def test_refusals(daemon, answer, message):
    d = daemon(answer)
    done = ctl("-s", d.path, "nodes")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"motetctl: {message}\n")


def test_rubbish(daemon):
    d = daemon(lambda r: b"{]\n")
    done = ctl("-s", d.path, "nodes")
    assert done.returncode == 1 and "not JSON" in done.stderr


def test_daemon_that_is_silent(daemon):
    d = daemon(lambda r: time.sleep(12))
    begin = time.monotonic()
    done = ctl("-s", d.path, "nodes")
    assert done.returncode == 1 and "does not answer" in done.stderr and time.monotonic() - begin < 12


@pytest.mark.parametrize("args, message", [
    ([], "no command given (see motetctl --help)"),
    (["frobnicate"], "'frobnicate': unknown command (see motetctl --help)"),
    (["nodes", "x"], "'x': nothing is expected here (see motetctl --help)"),
    (["set", "x"], "set: expected a name and a value (see motetctl --help)"),
    (["kill"], "kill: expected a job (see motetctl --help)"),
    (["-r", "x", "ranks"], "--rank x: expected a number (see motetctl --help)"),
    (["waits", "a", "b"], "'b': nothing is expected here (see motetctl --help)"),
    (["-N", "x", "waits"], "waits: the option -N means nothing here (see motetctl --help)"),
    (["-o", "x", "ranks"], "ranks: the option -o means nothing here (see motetctl --help)"),
    (["-w", "0", "ranks"], "--watch 0: expected seconds (see motetctl --help)"),
])
def test_bad_command_lines(args, message):
    done = ctl(*args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"motetctl: {message}\n")


def test_named_socket_that_is_not_there():
    done = ctl("nodes", env={"MOTET_STATUS_SOCKET": "/nowhere/status"})
    assert done.returncode == 1 and done.stderr == "motetctl: cannot connect to /nowhere/status: No such file or directory\n"


def test_runtime_directory(daemon, tmp_path):
    (tmp_path / "motet").mkdir()
    daemon(reply([{"a": 1}]), name=str(tmp_path / "motet" / "status.sock"))
    done = ctl("nodes", env={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert done.stdout == "A\n1\n"


def private_names():
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        return [line.split()[-1] for line in f if f"@motet-{os.getuid()}-" in line and line.rstrip().endswith("-status")]


@pytest.mark.skipif(os.path.exists("/run/motet/status.sock"), reason="a system daemon runs here")
def test_private_daemons_are_found(daemon):
    if private_names():
        pytest.skip("private daemons run here")
    mine = f"motet-{os.getuid()}-{os.getpid()}"
    daemon(reply([{"a": 1}]), name=f"\0{mine}1-status")
    assert ctl("nodes").stdout == "A\n1\n"
    daemon(reply([]), name=f"\0{mine}2-status")
    done = ctl("nodes")
    assert done.returncode == 1 and f"@{mine}1-status" in done.stderr and f"@{mine}2-status" in done.stderr


def test_local_needs_no_daemon():
    done = ctl("--json", "local")
    assert (done.returncode, done.stderr) == (0, "")
    installation, variables = (part["rows"] for part in json.loads(done.stdout))
    assert installation[0]["mpi"] == "5.0" and installation[0]["abi"] == "1.0" and installation[0]["version"] in installation[0]["library_says"]
    assert installation[0]["providers"][0] == "tcp"
    assert {row["variable"]: row for row in variables}["MOTET_CHECK"]["read_by"] == "library"
    assert "MOTET_DEBUG" in ctl("local").stdout


def test_info_as_data_tells_of_the_installation_too(daemon):
    d = daemon(reply([{"node": "n1"}]))
    row, = json.loads(ctl("-s", d.path, "-J", "info").stdout)
    assert row["node"] == "n1" and row["installation"]["abi"] == "1.0" and row["installation"]["thread_level"] == "multiple"
    assert "tcp" in row["installation"]["providers"] and row["installation"]["version"]
    assert {"variable": "MOTET_CHECK", "default": "1"}.items() <= next(v for v in row["variables"] if v["variable"] == "MOTET_CHECK").items()
    other, = json.loads(ctl("-s", d.path, "-J", "-N", "n2", "info").stdout)
    assert other == {"node": "n1"}


def test_info_tells_of_the_installation_too(daemon):
    done = ctl("-s", daemon(reply([{"node": "n1"}])).path, "info")
    assert done.returncode == 0 and "MOTET_CHECK" in done.stdout and "n1" in done.stdout
