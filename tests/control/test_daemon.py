#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One daemon, really running: jobs that end well and badly, output and input, attaching ranks, the status socket, reload, socket
activation, the private mode. Needs no privilege and no network.

    test_daemon.py MOTETD SPAWNER SUBMIT RANK CONF
"""
import atexit
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import schema  # noqa: E402

MOTETD, SPAWNER, SUBMIT, RANK, CONF = (os.path.abspath(a) for a in sys.argv[1:6])
LIMIT = 30


def wait_for(what, condition, limit=10):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.01)


STARTED = []


def popen(*args, **kw):
    """Whatever a failing test leaves behind ends with the run."""
    p = subprocess.Popen(*args, **kw)
    STARTED.append(p)
    return p


def end_all():
    for p in STARTED:
        if p.poll() is None:
            p.kill()
            p.wait()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Daemon:
    def __init__(self, extra="", prefix=(), env=None):
        self.dir = tempfile.TemporaryDirectory(prefix="control-test-")
        self.conf = os.path.join(self.dir.name, "motetd.conf")
        self.client = os.path.join(self.dir.name, "client.sock")
        self.status = os.path.join(self.dir.name, "status.sock")
        self.write(extra)
        self.log = open(os.path.join(self.dir.name, "log"), "w+")
        self.process = popen([*prefix, MOTETD, "-c", self.conf], stderr=self.log, stdin=subprocess.DEVNULL,
                                        env={**os.environ, "MOTET_SPAWNER": SPAWNER, **(env or {})})
        wait_for("the daemon's socket", lambda: os.path.exists(self.status) or self.process.poll() is not None)

    def write(self, extra):
        with open(self.conf, "w") as f:
            f.write(f"[node]\nname = testnode\nruntime_dir = {self.dir.name}\nlog_level = info\n{extra}\n")

    def text(self):
        with open(self.log.name) as f:
            return f.read()

    def submit(self, n, *command, options=(), stdin=subprocess.DEVNULL, **kw):
        return subprocess.run([SUBMIT, self.client, str(n), *options, "--", *command], stdin=stdin, capture_output=True,
                              timeout=LIMIT, **kw)

    def start(self, n, *command, options=()):
        return popen([SUBMIT, self.client, str(n), *options, "--", *command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, *requests, raw=False):
        answers = []
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LIMIT)
            s.connect(self.status)
            stream = s.makefile("rw")
            for r in requests:
                stream.write((r if isinstance(r, str) else json.dumps(r)) + "\n")
                stream.flush()
                answers.append(json.loads(stream.readline()))
                schema.check(json.loads(r) if isinstance(r, str) and r.startswith("{") else r, answers[-1])
        return answers if raw or len(answers) > 1 else answers[0]

    def rows(self, subject, **more):
        answer = self.ask({"get": subject, **more})
        assert answer["ok"], answer
        return answer["data"]

    def children(self):
        out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(p) for p in out.stdout.split()]

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(LIMIT)
        self.log.close()
        self.dir.cleanup()
        return code


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Daemon()

    @classmethod
    def tearDownClass(cls):
        left = cls.d.rows("jobs")
        code = cls.d.end()
        assert code == 0 and left == [], (code, left)

    def test_output_and_environment(self):
        r = self.d.submit(3, "sh", "-c", "echo $MOTET_RANK $MOTET_SIZE $PMI_RANK $OMPI_COMM_WORLD_LOCAL_RANK $MPI_LOCALNRANKS; "
                          "echo err >&2", env={**os.environ, "MOTET_RANK": "99"})
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(sorted(r.stdout.decode().splitlines()), ["0 3 0 0 3", "1 3 1 1 3", "2 3 2 2 3"])
        self.assertEqual(r.stderr, b"err\n" * 3)

    def test_exit_code_ends_the_others(self):
        start = time.monotonic()
        r = self.d.submit(3, "sh", "-c", "[ $MOTET_RANK = 1 ] && exit 7; sleep 60")
        self.assertEqual(r.returncode, 7)
        self.assertIn(b"rank 1 on node testnode exited with code 7", r.stderr)
        self.assertLess(time.monotonic() - start, 5)

    def test_signal_is_named(self):
        r = self.d.submit(2, "sh", "-c", "[ $MOTET_RANK = 0 ] && kill -SEGV $$; sleep 60")
        self.assertEqual(r.returncode, 139)
        self.assertIn(b"rank 0 on node testnode was killed by signal 11 (Segmentation fault)", r.stderr)

    def test_program_missing(self):
        r = self.d.submit(2, "/does/not/exist")
        self.assertEqual(r.returncode, 127)
        self.assertIn(b"/does/not/exist", r.stderr)

    def test_unknown_host(self):
        r = self.d.submit(2, "true", options=["-host", "nowhere:2"])
        self.assertEqual(r.returncode, 97)
        self.assertIn(b"reachable: testnode", r.stderr)

    def test_large_input_and_output(self):
        data = os.urandom(3_000_000)
        r = subprocess.run([SUBMIT, self.d.client, "2", "-stdin", "--", "sh", "-c", "if [ $MOTET_RANK = 0 ]; then cat; fi"],
                           input=data, capture_output=True, timeout=LIMIT)
        self.assertEqual(r.returncode, 0)
        self.assertEqual(r.stdout, data)

    def test_reader_that_stops_stops_the_writer(self):
        p = self.d.start(1, "sh", "-c", "head -c 50000000 /dev/zero; echo end >&2")
        time.sleep(1)
        # Nobody has read; no more than windows, pipes and sockets are under way.
        with open(f"/proc/{self.d.process.pid}/status") as f:
            kib = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
        self.assertLess(kib, 300_000 if "asan" in MOTETD else 60_000)
        out, err = p.communicate(timeout=LIMIT)
        self.assertEqual((len(out), err, p.returncode), (50_000_000, b"end\n", 0))

    def test_orphan_holds_no_job(self):
        start = time.monotonic()
        r = self.d.submit(1, "sh", "-c", "sleep 60 & echo done")
        self.assertEqual((r.returncode, r.stdout), (0, b"done\n"))
        self.assertLess(time.monotonic() - start, 5)

    def test_kill(self):
        self.assertEqual(self.d.submit(2, "sleep", "60", options=["-kill-after", "200", "15"]).returncode, 143)
        self.assertEqual(self.d.submit(2, "sleep", "60", options=["-kill-after", "200", "9"]).returncode, 137)
        # One that ignores SIGTERM goes after the grace.
        r = self.d.submit(2, "sh", "-c", "trap '' TERM; [ $MOTET_RANK = 0 ] && exit 3; sleep 60 & wait; sleep 60")
        self.assertEqual(r.returncode, 3)

    def test_mpiexec_dies(self):
        p = self.d.start(2, "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(p.stdout.readline()) for _ in range(2)]
        p.kill()
        p.communicate()
        wait_for("ranks to end", lambda: not any(alive(pid) for pid in pids))

    def test_nothing_is_left_of_dead_mpiexecs(self):
        def n_open():
            return len(os.listdir(f"/proc/{self.d.process.pid}/fd"))
        before = n_open()
        for _ in range(5):
            p = self.d.start(1, "sh", "-c", "echo $$; exec sleep 60")
            p.stdout.readline()
            p.kill()
            p.communicate()
        wait_for("the jobs to end", lambda: self.d.rows("jobs") == [])
        wait_for(f"descriptors to be closed, {before} were open", lambda: n_open() <= before)

    def test_spawner_dies(self):
        p = self.d.start(2, "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(p.stdout.readline()) for _ in range(2)]
        spawner = next(iter(self.d.children()))
        os.kill(spawner, signal.SIGKILL)
        _, err = p.communicate(timeout=LIMIT)
        self.assertIn(b"spawner", err)
        wait_for("ranks to end", lambda: not any(alive(pid) for pid in pids))
        wait_for("a new spawner", lambda: self.d.submit(1, "true").returncode == 0)

    def test_hundred_jobs(self):
        for _ in range(20):
            running = [self.d.start(2, "true") for _ in range(5)]
            for p in running:
                p.communicate(timeout=LIMIT)
                self.assertEqual(p.returncode, 0)


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Daemon()

    @classmethod
    def tearDownClass(cls):
        assert cls.d.end() == 0

    def test_attach(self):
        r = self.d.submit(4, RANK, "finalize")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(len(r.stdout.splitlines()), 4)

    def test_many(self):
        r = self.d.submit(64, RANK, "finalize")
        self.assertEqual((r.returncode, len(r.stdout.splitlines())), (0, 64), r.stderr[-500:])

    def test_wrong_key(self):
        r = self.d.submit(1, RANK, "wrongkey")
        self.assertEqual(r.returncode, 0)
        self.assertIn(b"no such job of this user", r.stderr)

    def test_second_attach(self):
        self.assertEqual(self.d.submit(2, RANK, "twice").returncode, 0)

    def test_abort(self):
        r = self.d.submit(3, RANK, "abort")
        self.assertEqual(r.returncode, 42)
        self.assertIn(b"MPI_Abort(MPI_COMM_WORLD, 42)", r.stderr)

    def test_no_finalize(self):
        r = self.d.submit(2, RANK, "leave")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"without calling MPI_Finalize", r.stderr)

    def test_no_finalize_under_a_wrapper(self):
        start = time.monotonic()
        r = self.d.submit(2, "sh", "-c", f"{RANK} leave; sleep 60")
        self.assertEqual(r.returncode, 1)
        self.assertLess(time.monotonic() - start, 5)

    def test_rule_breakers(self):
        for what in ("rubbish", "cut"):
            r = self.d.submit(2, RANK, what)
            self.assertEqual(r.returncode, 1, what)

    def test_hostile_clients(self):
        frames = [b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 64, b"\x00\x00\x80\x00\x14\x00FM" + b"x" * 1000, b"\x04\x00\x00\x00\x14\x00FMabcd",
                  b"\x28\x00\x00\x00\x00\x01FM" + b"\x01" * 40, b"\x00" * 8]
        for _ in range(20):
            for f in frames:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(self.d.client)
                    s.sendall(f)
        self.assertEqual(self.d.submit(2, RANK).returncode, 0)

    def test_queues_of_stopped_ranks(self):
        p = self.d.start(2, RANK, "board")
        for _ in range(2):
            self.assertEqual(p.stdout.readline(), b"board written\n")
        ranks = self.d.rows("ranks")
        self.assertEqual([r["rank"] for r in ranks], [0, 1])
        os.kill(ranks[1]["pid"], signal.SIGSTOP)
        wait_for("the stop", lambda: self.d.rows("ranks", rank=1)[0]["process"] == "stopped")
        job = ranks[0]["job"]
        rows = self.d.rows("queues", job=job, rank=1)
        self.assertEqual([(r["queue"], r["peer"], r["tag"], r["bytes"], r["communicator"]) for r in rows],
                         [("posted", "any", 77, 1024, 4), ("unexpected", 0, 78, 8, 4)])
        wait_for("an age", lambda: self.d.rows("queues", job=job, rank=1)[0]["age_ms"] > 0)
        self.assertEqual(len(self.d.rows("queues", job=job)), 4)
        self.assertEqual(self.d.rows("queues", job="0123456789abcdef"), [])
        self.assertNotIn("truncated", self.d.ask({"get": "queues", "job": job, "limit": 4}))
        cut = self.d.ask({"get": "queues", "job": job, "limit": 3})
        self.assertEqual((len(cut["data"]), cut["truncated"]), (3, True))
        self.assertEqual(len(self.d.ask({"get": "ranks", "limit": 1})["data"]), 1)
        parts = self.d.ask({"get": "all", "limit": 1})
        self.assertTrue(parts["truncated"])
        self.assertEqual([p["subject"] for p in parts["data"] if "truncated" in p], ["ranks", "queues"])
        self.assertTrue(self.d.ask({"set": "wait_mode", "job": job, "value": "event"})["ok"])
        p.kill()
        p.communicate()
        wait_for("the job to end", lambda: self.d.rows("jobs") == [])


class Status(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Daemon()

    @classmethod
    def tearDownClass(cls):
        assert cls.d.end() == 0

    def test_subjects(self):
        for subject in sorted(set(schema.ROWS) - {"set"}):
            answer = self.d.ask({"get": subject, "id": subject})
            self.assertEqual((answer["version"], answer["ok"], answer["id"]), (1, True, subject))
        self.assertEqual(self.d.rows("nodes")[0]["node"], "testnode")

    def test_errors(self):
        for request, code in (("", None), ("rubbish", "bad_request"), ("[1]", "bad_request"), ("{}", "bad_request"),
                              ({"get": "x"}, "bad_request"), ({"get": 1}, "bad_request"), ({"get": "jobs", "x": 1}, "bad_request"),
                              ({"get": "jobs", "job": "q"}, "bad_request"), ({"get": "jobs", "node": "q"}, "not_found"),
                              ({"set": "wait_mode", "value": "q", "job": "1"}, "bad_request"),
                              ({"set": "wait_mode", "value": "spin", "job": "1"}, "not_found")):
            if code is None:
                continue
            answer = self.d.ask(request)
            self.assertEqual((answer["ok"], answer["error"]["code"]), (False, code), request)

    def test_half_closed(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LIMIT)
            s.connect(self.d.status)
            s.sendall(b'{"get":"nodes"}\n' * 50)
            s.shutdown(socket.SHUT_WR)
            data = b""
            while True:
                more = s.recv(65536)
                if not more:
                    break
                data += more
        self.assertEqual(len(data.splitlines()), 50)

    def test_long_line(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LIMIT)
            s.connect(self.d.status)
            try:
                s.sendall(b"x" * 1_000_000)
                self.assertEqual(s.recv(10), b"")
            except (BrokenPipeError, ConnectionResetError):
                pass
        self.assertTrue(self.d.ask({"get": "nodes"})["ok"])


class Service(unittest.TestCase):
    def test_reload(self):
        d = Daemon()
        d.write("client_mode = 0600\n[jobs]\nmax_jobs = 1\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for("the reload", lambda: "configuration reloaded" in d.text())
        self.assertIn("client_mode in [node] changed; it takes effect after a restart", d.text())
        p = d.start(1, "sleep", "60")
        wait_for("the job", lambda: len(d.rows("jobs")) == 1)
        r = d.submit(1, "true")
        self.assertEqual(r.returncode, 97)
        self.assertIn(b"max_jobs", r.stderr)
        d.write("rubbish = 1\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for("the refusal", lambda: "was not reloaded" in d.text())
        self.assertRegex(d.text(), r"motetd.conf:5: rubbish: unknown key")
        # SIGTERM ends the job and then the daemon.
        self.assertEqual(d.end(), 0)
        _, err = p.communicate(timeout=LIMIT)
        self.assertIn(b"the daemon was told to end", err)

    def test_reload_of_what_the_daemon_keeps_elsewhere(self):
        """Without --config the installation's file is read again too; what would lie in it is the test's, by a mount of its own."""
        etc = re.search(r"default (\S+/motet)/motetd.conf", subprocess.run([MOTETD, "--help"], capture_output=True, text=True).stdout)[1]
        with tempfile.TemporaryDirectory(prefix="control-test-") as tmp:
            conf, log = tmp + "/motetd.conf", tmp + "/log"

            def write(more):
                with open(conf, "w") as f:
                    f.write(f"[node]\nname = testnode\nruntime_dir = {tmp}\n{more}")

            write("")
            made = not os.path.exists(etc)
            try:
                os.makedirs(etc, exist_ok=True)
            except OSError as error:
                self.skipTest(f"no directory for the configuration: {error}")
            if made:
                self.addCleanup(os.removedirs, etc)
            inside = f'mount --bind {tmp} {etc} && exec "{MOTETD}"'
            if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
                self.skipTest("no namespaces here")
            with open(log, "w") as f:
                p = popen(["unshare", "-rm", "sh", "-c", inside], stderr=f, stdin=subprocess.DEVNULL,
                          env={**os.environ, "MOTET_SPAWNER": SPAWNER})

            def text():
                with open(log) as f:
                    return f.read()

            wait_for("the daemon", lambda: os.path.exists(tmp + "/status.sock"))
            write("log_level = info\n[jobs]\nmax_jobs = 1\nkill_grace = 0s\n")
            p.send_signal(signal.SIGHUP)
            wait_for("the reload", lambda: "configuration reloaded, 0 settings need a restart" in text())
            job = popen([SUBMIT, tmp + "/client.sock", "1", "--", "sh", "-c", "echo runs; exec sleep 60"], stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL)
            self.assertEqual(job.stdout.readline(), b"runs\n")
            r = subprocess.run([SUBMIT, tmp + "/client.sock", "1", "--", "true"], stderr=subprocess.PIPE, timeout=LIMIT)
            self.assertIn(b"max_jobs", r.stderr)
            p.terminate()
            self.assertEqual((p.wait(LIMIT), job.wait(LIMIT)), (0, 143))
            job.stdout.close()

    def test_a_second_sigterm_ends_it_at_once(self):
        """With ranks attached that do not go."""
        d = Daemon()
        p = d.start(2, "sh", "-c", f"trap '' TERM; exec {RANK} board")
        for _ in range(2):
            self.assertEqual(p.stdout.readline(), b"board written\n")
        d.process.terminate()
        wait_for("the first", lambda: "the daemon was told to end" in d.text())
        start = time.monotonic()
        self.assertEqual(d.end(), 0)
        self.assertLess(time.monotonic() - start, 5)
        p.communicate(timeout=LIMIT)

    def test_kill_9_leaves_nothing(self):
        d = Daemon()
        p = d.start(2, "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(p.stdout.readline()) for _ in range(2)] + d.children()
        d.process.kill()
        d.process.wait()
        p.communicate(timeout=LIMIT)
        self.assertEqual(p.returncode, 98)
        wait_for("everything to end", lambda: not any(alive(pid) for pid in pids))
        # The stale sockets do not stand in the way of the next one.
        second = popen([MOTETD, "-c", d.conf], stderr=subprocess.PIPE, env={**os.environ, "MOTET_SPAWNER": SPAWNER})
        wait_for("the second daemon", lambda: d_answers(d))
        third = subprocess.run([MOTETD, "-c", d.conf], stderr=subprocess.PIPE, timeout=LIMIT,
                               env={**os.environ, "MOTET_SPAWNER": SPAWNER})
        self.assertEqual(third.returncode, 1)
        self.assertIn(b"another daemon does", third.stderr)
        second.terminate()
        second.communicate(timeout=LIMIT)
        self.assertFalse(os.path.exists(d.client))
        d.log.close()
        d.dir.cleanup()

    def test_notify_and_activation(self):
        with tempfile.TemporaryDirectory(prefix="control-test-") as tmp:
            notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            notify.bind(tmp + "/notify")
            notify.settimeout(LIMIT)
            listeners = []
            for name in ("c", "s"):
                s = socket.socket(socket.AF_UNIX)
                s.bind(f"{tmp}/{name}")
                s.listen(10)
                listeners.append(s)

            def pass_sockets():
                os.dup2(listeners[0].fileno(), 30)
                os.dup2(listeners[1].fileno(), 31)
                os.dup2(30, 3)
                os.dup2(31, 4)
                os.set_inheritable(3, True)
                os.set_inheritable(4, True)

            # LISTEN_PID must be the daemon's own: the shell becomes it.
            p = popen(["sh", "-c", f'LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=client:status exec "{MOTETD}" -c /dev/null'],
                                 preexec_fn=pass_sockets, close_fds=False, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 env={**os.environ, "MOTET_SPAWNER": SPAWNER, "NOTIFY_SOCKET": tmp + "/notify",
                                      "WATCHDOG_USEC": "2000000"})
            heard = ""
            while "READY=1" not in heard or "WATCHDOG=1" not in heard or "STATUS=" not in heard:
                heard += notify.recv(4096).decode() + "\n"
            r = subprocess.run([SUBMIT, tmp + "/c", "2", "--", RANK], capture_output=True, timeout=LIMIT)
            self.assertEqual(r.returncode, 0, r)
            p.terminate()
            _, err = p.communicate(timeout=LIMIT)
            self.assertEqual(p.returncode, 0, err)
            # They belong to whoever made them.
            self.assertTrue(os.path.exists(tmp + "/c"))
            for s in (*listeners, notify):
                s.close()

    def test_private(self):
        read_end, write_end = os.pipe()
        os.set_inheritable(read_end, True)
        p = popen([MOTETD, "--private", "--lifeline", str(read_end)], pass_fds=[read_end], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**os.environ, "MOTET_SPAWNER": SPAWNER})
        os.close(read_end)
        line = p.stdout.readline().decode()
        client = re.fullmatch(r"ready client=(@\S+) status=(@\S+)\n", line).group(1)
        r = subprocess.run([SUBMIT, client, "2", "--", RANK], capture_output=True, timeout=LIMIT)
        self.assertEqual(r.returncode, 0, r)
        job = popen([SUBMIT, client, "2", "--", "sh", "-c", "echo $$; exec sleep 60"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        pids = [int(job.stdout.readline()) for _ in range(2)]
        os.close(write_end)
        _, err = p.communicate(timeout=LIMIT)
        self.assertEqual((p.returncode, err), (0, b""))
        wait_for("ranks to end", lambda: not any(alive(pid) for pid in pids))
        job.communicate(timeout=LIMIT)

    def test_default_configuration_file(self):
        r = subprocess.run([MOTETD, "--config", "/dev/null", "--print-config"], capture_output=True, text=True, timeout=LIMIT)
        with open(CONF) as f:
            self.assertEqual(f.read().split("\n", 1)[1], r.stdout)
        r = subprocess.run([MOTETD, "--config", CONF, "--check-config"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def check(self, text, **files):
        """What --check-config says of a file with this text, DIR being its folder; `files`: others there, with their modes."""
        with tempfile.TemporaryDirectory(prefix="control-test-") as tmp:
            for name, (content, mode) in files.items():
                with open(os.path.join(tmp, name), "w") as f:
                    f.write(content)
                os.chmod(os.path.join(tmp, name), mode)
            os.mkdir(os.path.join(tmp, "folder"))
            conf = os.path.join(tmp, "m.conf")
            with open(conf, "w") as f:
                f.write(text.replace("DIR", tmp))
            r = subprocess.run([MOTETD, "--config", conf, "--check-config"], capture_output=True, text=True, timeout=LIMIT,
                               env={**os.environ, "MOTET_SPAWNER": SPAWNER})
            return r.returncode, r.stderr.replace(tmp, "DIR")

    def test_check_config(self):
        """What would fail on this host is found, with file and line."""
        good = "[node]\nkey_file = DIR/key\n[channel a]\ncidr = 127.0.0.0/8\n"
        key = {"key": ("k" * 32, 0o600)}
        self.assertEqual(self.check(good, **key), (0, ""))
        for mistake, line, words, files in (
                ("seeds = nosuch.invalid\n", 5, "channel a: seeds: nosuch.invalid cannot be looked up", key),
                ("seeds = 127.0.0.1, 127.0.0.2:70000\n", 5, "seeds: 127.0.0.2:70000: expected a port", key),
                ("provider = upd\n", 5, "channel a: provider = upd: unknown on this host (did you mean udp?); there are: tcp", key),
                ("provider = ofi-tcp\ndata_port = 9\n", 6, "provider ofi-tcp chooses its ports itself", key),
                ("[channel b]\ncidr = 127.0.0.0/8\n", 6, "channel b: has the same address 127.0.0.1 as channel a", key),
                ("[channel b]\ncidr = 192.0.2.1/32\n", 6, "no interface has an address in 192.0.2.1/32; there are:", key),
                ("[node]\nspawner = DIR/folder\n", 6, "spawner = DIR/folder: expected a program", key),
                ("", 2, "can be read by others (mode 0644); expected 0600", {"key": ("k" * 32, 0o644)}),
                ("", 2, "has 5 bytes; expected 32 to 1024", {"key": ("short", 0o600)}),
                ("", 2, "No such file", {})):
            rc, said = self.check(good + mistake, **files)
            self.assertEqual((rc, said.count("\n")), (1, 1), said)
            self.assertIn(f"DIR/m.conf:{line}: ", said)
            self.assertIn(words, said)
        rc, said = self.check(good.replace("DIR/key", "DIR/folder"))
        self.assertIn("DIR/m.conf:2: the cluster key DIR/folder is a folder, expected a file", said)
        r = subprocess.run([MOTETD, "--config", "/tmp", "--check-config"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((r.returncode, r.stderr), (1, "motetd: /tmp: is a folder, expected a file\n"))

    def test_missing_interface(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write("[node]\nkey_file = /x\n[channel a]\nnetwork = n\ninterface = nosuch0\n")
            f.flush()
            r = subprocess.run([MOTETD, "--config", f.name, "--check-config"], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(r.returncode, 1)
            self.assertIn(f"{f.name}:5: channel a: interface nosuch0 does not exist; there are: lo", r.stderr)


def d_answers(d):
    try:
        return d.ask({"get": "nodes"})["ok"]
    except OSError:
        return False


if __name__ == "__main__":
    atexit.register(end_all)
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
