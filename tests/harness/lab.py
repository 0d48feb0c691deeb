# SPDX-License-Identifier: BSD-3-Clause
"""A lab under test: motet-lab driven as a user drives it, and the question what was left behind."""
import collections
import json
import os
import select
import subprocess
import time

from . import stage

_serial = [0]


def why_impossible(installation):
    """None, or why this machine makes no labs."""
    done = stage.run([installation.motet_lab, 'check'], check=False)
    return None if done.returncode == 0 else done.stderr.strip()


class Lab:
    """A lab that is up. It goes down with `down`, or with the test run, whatever kills that."""

    up_now = []

    def __init__(self, installation, file, log_dir, *options, daemons=True):
        _serial[0] += 1
        self.installation = installation
        self.name = f'test-{os.getpid()}-{_serial[0]}'
        self.log_dir = str(log_dir)
        os.makedirs(self.log_dir, exist_ok=True)
        words = [] if daemons else ['--no-daemons']
        self.up_output = self.lab('up', file, '--watch', os.getpid(), '--logs', self.log_dir, *words, *options,
                                  timeout_s=90).stdout
        self.started = []
        Lab.up_now.append(self)
        self.nodes = [node['name'] for node in self.status()['nodes']]
        self.baseline = self.traces() if daemons else None

    def lab(self, command, *words, timeout_s=30.0, check=True):
        return stage.run([self.installation.motet_lab, command, '--name', self.name, *words], timeout_s, check)

    def status(self):
        return json.loads(self.lab('status', '--json').stdout)

    def on_words(self, node, words):
        return [self.installation.motet_lab, '--name', self.name, 'exec', node, '--', *map(str, words)]

    def on(self, node, *words, timeout_s=60.0, check=True, **options):
        """Runs a command on a node to its end."""
        return stage.run(self.on_words(node, words), timeout_s, check, **options)

    def start(self, node, *words, **options):
        """Starts a command on a node. Returns the Popen, with text pipes; the caller ends it (see `stop`)."""
        process = subprocess.Popen(self.on_words(node, words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors='replace', start_new_session=True, **options)
        self.started.append(process)
        return process

    def mpiexec_words(self, hosts, program, n=None):
        n_ranks = n or len(hosts)
        return ['mpiexec', '-n', n_ranks, '-hosts', ','.join(hosts)] + (['-ppn', 1] if n_ranks == len(hosts) else []) + \
            list(program)

    def mpi(self, hosts, *program, n=None, timeout_s=60.0, check=True):
        """Runs an MPI program over `hosts`, one rank each (or n in all), started on the first one."""
        return self.on(hosts[0], *self.mpiexec_words(hosts, program, n), timeout_s=timeout_s, check=check)

    def start_mpi(self, hosts, *program, n=None):
        return self.start(hosts[0], *self.mpiexec_words(hosts, program, n))

    def motetctl(self, node, *words):
        """A view of the node's daemon as data."""
        return json.loads(self.on(node, 'motetctl', '--json', *words).stdout)

    def motetctl_any(self, node, *words):
        """The same from a command that may say by its exit code that something is wrong."""
        return json.loads(self.on(node, 'motetctl', '--json', *words, check=False).stdout)

    def processes(self, *node):
        """(node, pid in the lab, command line) of what runs on a node or on all."""
        words = [line.split(None, 2) + [''] for line in self.lab('ps', *node).stdout.splitlines()]
        return [(word[0], int(word[1]), word[2]) for word in words]

    def pids(self, node, program):
        """Pids of the ranks on a node that run `program` (a path)."""
        return [pid for _, pid, command in self.processes(node) if command.split(' ')[0] == program]

    def signal(self, node, number, *pids):
        self.on(node, 'kill', f'-{number}', *pids)

    def traces(self):
        """Everything in the lab that a job could leave, by node: programs that run, names in /dev/shm, in the runtime directory and
        in /tmp (but those of other tests that run meanwhile), listening sockets, System V memory."""
        script = ('ls -A /dev/shm | sed s,^,shm:,; ls -A /run/motet | sed s,^,run:,; '
                  'ls -d /tmp/motet* 2>/dev/null | grep -vE "^/tmp/motet-(model|suite|fuzz|bench)-"; '
                  'awk \'$4 == "00010000" && $8 {print "listens:" $8}\' /proc/net/unix; '
                  'tail -n +2 /proc/sysvipc/shm | sed s,^,sysv:,')
        found = {node: sorted(self.on(node, 'sh', '-c', script).stdout.splitlines()) for node in self.nodes}
        for node, _, command in self.processes():
            found[node].append('runs: ' + command)
        return found

    def assert_clean(self, within_s=6.0):
        """Nothing is left of any job: each node is as it was after `up`."""
        self.assert_clean_but(None, within_s)

    def assert_clean_but(self, ended, within_s=6.0):
        """The same while the daemon of the node `ended` does not run: its socket's names stay for the next one."""
        deadline = time.monotonic() + within_s
        while True:
            now = self.traces()
            left = {node: without(now[node], self.baseline[node]) for node in self.nodes}
            if ended:
                left[ended] = [trace for trace in left[ended] if not trace.startswith('run:')]
            if not any(left.values()):
                return
            assert time.monotonic() < deadline, f'left behind {within_s:g} s after the end: {left}'
            time.sleep(0.1)

    def log_tails(self, n_lines=25):
        text = []
        for name in sorted(os.listdir(self.log_dir)):
            with open(os.path.join(self.log_dir, name), encoding='utf-8', errors='replace') as file:
                text += [f'--- {name}'] + file.read().splitlines()[-n_lines:]
        return '\n'.join(text)

    def repair(self):
        """Ends what a test has started and left running, and starts the daemons that it has left dead, so that a test that fails does
        not take those behind it along."""
        left = [process for process in self.started if process.poll() is None]
        for process in left:
            stop(process)
        self.started.clear()
        dead = [node['name'] for node in self.status()['nodes'] if not node['daemon']]
        for node in dead:
            self.lab('start', node)
        if left or dead:
            self.wait_routes()

    def wait_routes(self, timeout_s=20.0):
        self.lab('wait', '--timeout', timeout_s, timeout_s=timeout_s + 10)

    def down(self):
        if self in Lab.up_now:
            Lab.up_now.remove(self)
            self.lab('down')


def without(these, those):
    """What of `these` is not in `those`, counting repetitions."""
    return list((collections.Counter(these) - collections.Counter(those)).elements())


def stop(process, timeout_s=10.0):
    """Ends a started command if it still runs; returns its output."""
    if process.poll() is None:
        stage.kill_group(process)
    return process.communicate(timeout=timeout_s)[0]


def finish(process, timeout_s):
    """Waits for a started command. Returns (exit code, output); no end in time is a failure."""
    try:
        output = process.communicate(timeout=timeout_s)[0]
    except subprocess.TimeoutExpired:
        raise AssertionError(f'no end after {timeout_s:g} s\n{stop(process)}') from None
    return process.returncode, output


def read_line(stream):
    """The next line and not a byte more, since communicate() does not see what a buffered reader has read ahead."""
    line = b''
    while not line.endswith(b'\n'):
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode()


def read_until(process, text, timeout_s):
    """Reads the process's output up to the line that contains `text`. Returns what was read."""
    deadline = time.monotonic() + timeout_s
    read = ''
    while text not in read:
        left = deadline - time.monotonic()
        assert left > 0 and select.select([process.stdout], [], [], left)[0], f'no "{text}" within {timeout_s:g} s:\n{read}'
        line = read_line(process.stdout)
        assert line, f'ended before "{text}":\n{read}'
        read += line
    return read


# ---- the end of a whole lab ----

class Remains:
    """All processes of a lab, wherever they hide: those of its process namespace. The namespace is held open, or the kernel would give
    its number to the next one that somebody makes."""

    def __init__(self, lab):
        self.lab = lab
        self.space = os.open(f'/proc/{holder_of(lab)}/ns/pid', os.O_RDONLY)
        self.inode = os.fstat(self.space).st_ino

    def processes(self):
        found = set()
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if os.stat(f'/proc/{pid}/ns/pid').st_ino == self.inode:
                    found.add(int(pid))
            except OSError:
                pass
        return found

    def assert_gone(self, within_s=5.0):
        """No process of the lab is left, so nothing holds its namespaces and mounts, and nobody answers for it."""
        deadline = time.monotonic() + within_s
        while self.processes() or self.lab.name in stage.run([self.lab.installation.motet_lab, 'list']).stdout.split():
            assert time.monotonic() < deadline, f'still there: {self.processes()}'
            time.sleep(0.05)
        os.close(self.space)


def holder_of(lab):
    """The lab's first process, by its number as the caller sees it: it carries the lab's name in its command line and is number 1 of a
    process namespace."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                named = lab.name.encode() in file.read().split(b'\0')
            with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as file:
                numbers = next(line for line in file if line.startswith('NSpid')).split()[1:]
        except (OSError, StopIteration):
            continue
        if named and len(numbers) > 1 and numbers[-1] == '1':
            return int(pid)
    raise AssertionError(f'no holder of {lab.name}')

