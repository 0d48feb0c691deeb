# SPDX-License-Identifier: BSD-3-Clause
"""Where a program of other people runs: on one node, over several in a lab, or on MPICH's library. A place gives the words that start
ranks, and ends whatever does not end by itself."""
import os
import subprocess
import tempfile
import time

from . import inputs, lab, stage

# Ranks take turns on these nodes: of one network, and of the outer ones of three in a row.
LABS = {'two': ('one-network', ['n1', 'n2', 'n1', 'n2']), 'three': ('three-networks', ['a1', 'c1', 'a2', 'c2'])}
LONGEST_QUEUES = 3000


class Node:
    """One node, with a daemon for each job."""

    def __init__(self, installation):
        self.installation = installation
        self.environment = dict(os.environ)

    def shell(self, words):
        """The words that run a command where mpiexec can be called."""
        return words

    def mpiexec(self):
        return [self.installation.mpiexec, '-private']

    def words(self, n_ranks):
        """The words that start ranks from here."""
        return self.shell([*self.mpiexec(), '-n', n_ranks])

    def queues(self):
        return stage.run([self.installation.motetctl, 'queues'], 20, check=False).stdout

    def assert_clean(self):
        """Nothing is left of what ran. A private daemon ends with its job."""

    def close(self):
        pass


class Cluster(Node):
    """A lab of LABS."""

    def __init__(self, installation, name, logs):
        super().__init__(installation)
        file, self.hosts = LABS[name]
        self.cluster = lab.Lab(installation, file, logs)

    def shell(self, words):
        return self.cluster.on_words(self.hosts[0], words)

    def mpiexec(self):
        return [self.installation.mpiexec, '-hosts', ','.join(self.hosts)]

    def queues(self):
        return self.cluster.on(self.hosts[0], 'motetctl', 'queues', check=False).stdout

    def assert_clean(self):
        self.cluster.assert_clean()

    def close(self):
        self.cluster.down()


class Mpich(Node):
    """The same binaries with MPICH's library of the standard ABI, from its wheel."""

    def __init__(self):
        super().__init__(None)
        self.mpich = inputs.Mpich()
        self.environment = self.mpich.environment

    def mpiexec(self):
        return [self.mpich.mpiexec]

    def queues(self):
        return ''


def make(name, installation, logs):
    """node, mpich, or a name of LABS."""
    return Mpich() if name == 'mpich' else Node(installation) if name == 'node' else Cluster(installation, name, logs)


def run(place, words, limit_s, **options):
    """Runs a command at a place to its end, or to its deadline and then shows the queues. Returns (seconds, exit code or None for no end
    in time, output)."""
    options.setdefault('env', place.environment)
    start = time.monotonic()
    with tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as file:
        with subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                              start_new_session=True, **options) as process:
            try:
                code = process.wait(timeout=limit_s)
            except subprocess.TimeoutExpired:
                code = None
                file.write(place.queues()[:LONGEST_QUEUES])
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    pass
            finally:
                stage.kill_group(process)
        seconds = time.monotonic() - start
        file.seek(0)
        return seconds, code, file.read()
