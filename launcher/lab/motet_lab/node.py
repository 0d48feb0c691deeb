# SPDX-License-Identifier: BSD-3-Clause
"""One node of a lab: a process that sits in namespaces of its own, and the daemon that is started in them.

A node has its own network, host name, System V objects, /dev/shm and /run, so that motetd and MPI programs run there with their
default paths as on a machine of their own. Process numbers and the file system are shared by the lab.
"""
import os
import signal
import subprocess

from . import kernel, wiring

RUN_DIR = '/run/motet'
CONFIG_FILE = '/run/motet-lab/motetd.conf'
KEY_FILE = '/run/motet-lab/cluster.key'
LOG_FILE = '/run/motet-lab/motetd.log'
SPACES = kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNS
MAX_SEEDS = 8
TMPFS = kernel.MS_NOSUID | kernel.MS_NODEV


def motetd_conf(cluster, node):
    """The text of the node's motetd.conf."""
    sections = {'node': {'name': node.name, 'runtime_dir': RUN_DIR, 'key_file': KEY_FILE}}
    for network in node.networks:
        others = [network.address(other) for other in network.nodes if other is not node]
        section = {'interface': network.name, 'network': network.name, 'provider': network.provider}
        if network.rate:  # a veth pair reports 10 Gbit/s whatever it is shaped to
            section['mbytes_per_s'] = max(1, network.bytes_per_second() // 1000000)
        if others:
            section['seeds'] = ', '.join(others[:MAX_SEEDS])
        sections[f'channel {network.name}'] = section
    for section, key, value in cluster.settings + node.settings:
        sections.setdefault(section, {})[key] = value
    lines = []
    for section, values in sections.items():
        lines.append(f'[{section}]')
        lines += [f'{key} = {value}' for key, value in values.items()]
        lines.append('')
    return '\n'.join(lines)


def spawn_sitter(title, prepare):
    """Forks a process that does `prepare`, says so, and sits until it is killed. Returns (pid, pidfd, text of prepare)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            kernel.die_with_parent()
            kernel.set_title(title)
            note = prepare() or ''
            os.write(writer, b'+' + note.encode())
            os.closerange(3, 1 << 16)  # above all the lab's socket and the pipe to `up`, whose end must mean something
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            while True:
                signal.pause()
        except BaseException as error:  # whatever it is: the parent must hear of it
            os.write(writer, f'-{error}'.encode())
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, 'rb') as pipe:
        text = pipe.read().decode()
    if not text.startswith('+'):
        os.waitpid(pid, 0)
        raise wiring.WiringError(f'{title}: {text[1:]}')
    return pid, os.pidfd_open(pid), text[1:]


def spawn_closet():
    """The namespace of the bridges."""
    return spawn_sitter('lab:wiring', lambda: kernel.unshare(kernel.CLONE_NEWNET))[:2]


class NodeProcess:
    """A node that is up: its sitter, its daemon, its cuts."""

    def __init__(self, node, cluster, key, motetd, log_dir):
        self.node = node
        self.motetd = motetd
        self.log_file = os.path.join(log_dir, f'{node.name}.log') if log_dir else LOG_FILE
        self.cuts = set()        # names of networks
        self.daemon = None       # subprocess.Popen
        self.daemon_end = None   # how the last daemon ended, in words; None while it runs or before the first
        self.note = ''
        self.config = motetd_conf(cluster, node)
        self.key = key
        self.congestion = cluster.congestion
        self.pid, self.pidfd, self.note = spawn_sitter(f'lab:{node.name}', self._prepare)

    def _prepare(self):
        """In the sitter: makes the namespaces. Returns a note for the user or None."""
        kernel.unshare(SPACES)
        kernel.mount(None, '/', None, kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount('tmpfs', '/dev/shm', 'tmpfs', TMPFS, 'mode=1777')
        kernel.mount('tmpfs', '/run', 'tmpfs', TMPFS, 'mode=755')
        try:  # so that /sys/class/net shows this node's interfaces; not granted everywhere, and only a convenience
            kernel.mount('sysfs', '/sys', 'sysfs', TMPFS | kernel.MS_NOEXEC)
        except OSError:
            pass
        kernel.set_hostname(self.node.name)
        os.mkdir(os.path.dirname(CONFIG_FILE), 0o755)
        os.mkdir(RUN_DIR, 0o755)
        for path, text, mode in ((CONFIG_FILE, self.config, 0o644), (KEY_FILE, self.key + '\n', 0o600)):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), 'w', encoding='utf-8') as file:
                file.write(text)
        wiring.write_sysctl('net/ipv6/conf/all/disable_ipv6', '1')  # only noise on a bridge without a router
        wiring.write_sysctl('net/ipv4/ip_forward', '0')             # nothing but the daemons joins the networks
        refused = wiring.write_sysctl('net/ipv4/tcp_congestion_control', self.congestion)
        if refused:
            with open('/proc/sys/net/ipv4/tcp_congestion_control', encoding='ascii') as file:
                return f'TCP congestion control {self.congestion} refused ({refused}), {file.read().strip()} stays'
        return None

    def start_daemon(self):
        log = os.open(self._inside(self.log_file), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        pidfd = self.pidfd

        def enter():
            # Not a session: all nodes share these few cores, and yield to each other only within one session (autogroups).
            os.setpgid(0, 0)
            kernel.setns(pidfd, SPACES)
            os.chdir('/')

        try:
            self.daemon = subprocess.Popen([self.motetd, '--config', CONFIG_FILE], stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=log, close_fds=True, preexec_fn=enter)  # noqa: PLW1509 (this process has one thread)
        finally:
            os.close(log)
        self.daemon_end = None

    def _inside(self, path):
        """A path of the node as the holder reaches it."""
        return path if path != LOG_FILE else f'/proc/{self.pid}/root{path}'

    def reap(self):
        """Notices the daemon's end."""
        if self.daemon and self.daemon.poll() is not None:
            code = self.daemon.returncode
            self.daemon_end = signal.Signals(-code).name if code < 0 else f'exit {code}'
            self.daemon = None

    def read_log(self):
        try:
            with open(self._inside(self.log_file), encoding='utf-8', errors='replace') as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def processes(self):
        """(pid, command line) of everything in the node's network namespace but the sitter."""
        own = os.stat(f'/proc/{self.pid}/ns/net')
        found = []
        for entry in os.listdir('/proc'):
            if not entry.isdigit() or int(entry) == self.pid:
                continue
            try:
                space = os.stat(f'/proc/{entry}/ns/net')
                with open(f'/proc/{entry}/cmdline', 'rb') as file:
                    words = file.read().rstrip(b'\0').split(b'\0')
            except OSError:  # gone meanwhile, or a zombie
                continue
            if space.st_ino == own.st_ino and space.st_dev == own.st_dev:
                found.append((int(entry), b' '.join(words).decode(errors='replace')))
        return sorted(found)
