# SPDX-License-Identifier: BSD-3-Clause
"""The holder: process 1 of a lab. It builds the lab, answers requests, and is what keeps the lab alive.

Nothing of a lab has a name in the file system outside: the namespaces are held by processes, files lie in mounts of the lab, the
lab is found by an abstract socket. Since the holder is the first process of a process namespace, its end, also by kill -9, makes
the kernel end every process of the lab, and with the last process go namespaces, interfaces and mounts. So there is nothing to
clean up and nothing that could be forgotten.

    up (outside)                         holder (inside, process 1)
      bind socket, fork, unshare, fork ->  mount, nodes, wires, daemons
      prints progress from the pipe   <-   lines of JSON: progress / ready / error
      exits                                serves the socket until "down", a signal, or the end of the watched process

Requests and answers are one JSON object per line; an answer may carry a pidfd (the node's sitter) for setns.
"""
import json
import os
import secrets
import selectors
import signal
import socket
import struct
import time
import traceback

from . import drawing, kernel, node, status, wiring

DRAIN_S = 2.0


class Refused(Exception):
    """A request that cannot be met; the text goes to the user."""


class Lab:
    """The lab as the holder knows it. Everything here runs on the holder's only thread."""

    def __init__(self, cluster, name, mode, motetd, log_dir):
        self.cluster = cluster
        self.name = name
        self.mode = mode
        self.motetd = motetd
        self.log_dir = log_dir
        self.closet = None
        self.nodes = {}
        self.notes = set()

    def build(self, say):
        self.closet_pid, self.closet = node.spawn_closet()
        wiring.build_closet(self.closet, self.cluster)
        key = secrets.token_hex(32)
        for one in self.cluster.nodes:
            made = node.NodeProcess(one, self.cluster, key, self.motetd, self.log_dir)
            self.nodes[one.name] = made
            wiring.connect(self.closet, one, made.pidfd, made.pid)
            if made.note:
                self.notes.add(made.note)
        say(f'{len(self.nodes)} nodes wired to {len(self.cluster.networks)} networks')
        for note in sorted(self.notes):
            say(f'note: {note}')
        if self.motetd:
            for made in self.nodes.values():
                made.start_daemon()
            say(f'{len(self.nodes)} daemons started')

    def find(self, request):
        made = self.nodes.get(request.get('node'))
        if made is None:
            raise Refused(f'no node {request.get("node")}: there are {" ".join(self.nodes)}')
        return made

    def find_port(self, request):
        made = self.find(request)
        network = self.cluster.network(request.get('network'))
        if network is None or network not in made.node.networks:
            on = ' '.join(n.name for n in made.node.networks)
            raise Refused(f'node {made.node.name} is on {on}, not on {request.get("network")}')
        return made, network

    def reap(self):
        for made in self.nodes.values():
            made.reap()

    # ---- requests: each takes the request and returns (answer, descriptors to send) ----

    def on_enter(self, request):
        return {'mode': self.mode}, [self.find(request).pidfd]

    def on_cut(self, request):
        made, network = self.find_port(request)
        wiring.cut(self.closet, network, made.node, bool(request.get('silent')))
        made.cuts.add(network.name)
        return {}, []

    def on_heal(self, request):
        made, network = self.find_port(request)
        wiring.heal(self.closet, network, made.node)
        made.cuts.discard(network.name)
        return {}, []

    def on_kill(self, request):
        made = self.find(request)
        made.reap()
        if request.get('power'):
            for pid, _ in made.processes():
                kill_quietly(pid)
        elif made.daemon is None:
            raise Refused(f'no daemon runs on {made.node.name} ({made.daemon_end or "never started"})')
        else:
            made.daemon.kill()
        if made.daemon:
            made.daemon.wait(timeout=10)
            made.reap()
        return {}, []

    def on_start(self, request):
        made = self.find(request)
        made.reap()
        if made.daemon:
            raise Refused(f'the daemon of {made.node.name} runs')
        if not self.motetd:
            raise Refused('this lab was brought up without daemons')
        made.start_daemon()
        return {}, []

    def on_status(self, request):
        self.reap()
        nodes = []
        for made in self.nodes.values():
            nodes.append({
                'name': made.node.name, 'pid': made.pid, 'daemon': made.daemon.pid if made.daemon else None,
                'daemon_end': made.daemon_end, 'cuts': sorted(made.cuts),
                'addresses': {n.name: n.address(made.node) for n in made.node.networks}})
        networks = [{'name': n.name, 'provider': n.provider, 'rate': n.rate, 'mtu': n.mtu,
                     'nodes': [m.name for m in n.nodes]} for n in self.cluster.networks]
        return {'lab': self.name, 'file': self.cluster.path, 'mode': self.mode, 'nodes': nodes, 'networks': networks,
                'notes': sorted(self.notes), 'drawing': self.drawing()}, []

    def on_processes(self, request):
        return {'processes': self.find(request).processes()}, []

    def on_log(self, request):
        return {'text': self.find(request).read_log()}, []

    def on_missing(self, request):
        """What is still missing until every living daemon reaches every other: lines of text; none = all routes are up."""
        self.reap()
        missing = []
        living = {name for name, made in self.nodes.items() if made.daemon}
        for name, made in self.nodes.items():
            if made.daemon is None:
                if self.motetd and made.daemon_end and made.daemon_end != 'SIGKILL':
                    missing.append(f'{name}: the daemon ended ({made.daemon_end})')
                continue
            wanted = (self.cluster.reachable()[name] & living) if request.get('all', True) else set()
            reached, error = status.reached_nodes(f'/proc/{made.pid}/root{node.RUN_DIR}')
            if error:
                missing.append(f'{name}: {error}')
            elif wanted - reached:
                missing.append(f'{name}: no route to {" ".join(sorted(wanted - reached))}')
        return {'missing': missing}, []

    def drawing(self):
        cuts = {(made.node.name, network) for made in self.nodes.values() for network in made.cuts}
        dead = [name for name, made in self.nodes.items() if made.daemon is None] if self.motetd else []
        return drawing.draw(self.cluster, cuts, dead)

    def answer(self, line):
        """One request line to (answer, descriptors)."""
        try:
            request = json.loads(line)
            handler = getattr(self, 'on_' + str(request.get('do')), None)
            if handler is None:
                raise Refused(f'unknown request {request.get("do")}')
            answer, descriptors = handler(request)
            return {'ok': True, **answer}, descriptors
        except (Refused, wiring.WiringError, OSError, ValueError) as error:
            return {'ok': False, 'error': str(error)}, []


def kill_quietly(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def serve_one(lab, connection):
    """Answers the one request of a connection. Returns False when it was `down`."""
    with connection:
        connection.settimeout(5)
        peer_uid = struct.unpack('iII', connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        try:
            if peer_uid not in (0, os.geteuid()):
                return True  # a stranger; the abstract name has no permissions of its own
            line = b''
            while not line.endswith(b'\n'):
                piece = connection.recv(65536)
                if not piece or len(line) > 1 << 20:
                    return True
                line += piece
            if json.loads(line).get('do') == 'down':
                connection.sendall(b'{"ok": true}\n')
                return False
            answer, descriptors = lab.answer(line)
            data = (json.dumps(answer) + '\n').encode()
            sent = socket.send_fds(connection, [data], descriptors) if descriptors else 0
            if sent < len(data):
                connection.sendall(data[sent:])
        except (OSError, ValueError):
            pass  # the asker went away or spoke nonsense; nobody is left to tell
    return True


def reap_strangers(lab):
    """Process 1 inherits every orphan of the lab. The daemons are left to their Popen objects."""
    known = {made.daemon.pid for made in lab.nodes.values() if made.daemon}
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None:
            return
        if found.si_pid in known:
            lab.reap()
            known.discard(found.si_pid)
            if any(made.daemon and made.daemon.pid == found.si_pid for made in lab.nodes.values()):
                return
        else:
            os.waitpid(found.si_pid, 0)


def serve(lab, listener, watched):
    """Until `down`, a signal, or the end of the watched process (a pidfd or None)."""
    wake_reader, wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    ending = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: ending.append(n))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(wake_reader, selectors.EVENT_READ)
        if watched is not None:
            selector.register(watched, selectors.EVENT_READ)
        reap_strangers(lab)
        while not ending:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    connection = listener.accept()[0]
                    if not serve_one(lab, connection):
                        return
                elif key.fileobj == wake_reader:
                    os.read(wake_reader, 4096)
                    reap_strangers(lab)
                else:
                    return


def drain(lab):
    """Lets the daemons end in order, so that a lab's end is an ordinary end for them; the kernel takes what has not ended by then."""
    deadline = time.monotonic() + DRAIN_S
    lab.reap()
    living = [made for made in lab.nodes.values() if made.daemon]
    for made in living:
        made.daemon.terminate()
    while any(made.daemon for made in living) and time.monotonic() < deadline:
        time.sleep(0.01)
        lab.reap()


def main(lab, listener, watched, report):
    """The holder's life; called in process 1 of the new namespaces. `report` is the pipe to `up`. Never returns."""
    def tell(**message):
        try:
            os.write(report, (json.dumps(message) + '\n').encode())
        except OSError:
            pass  # `up` was killed; the lab is up all the same

    try:
        kernel.set_title('motet-lab')
        kernel.mount(None, '/', None, kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount('proc', '/proc', 'proc', kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        lab.build(lambda text: tell(progress=text))
        tell(ready=True)
        os.close(report)
        serve(lab, listener, watched)
        drain(lab)
    except (wiring.WiringError, OSError) as error:
        tell(error=str(error))
    except BaseException:  # a bug of ours: `up` shows it
        tell(error=traceback.format_exc())
    finally:
        os._exit(0)
