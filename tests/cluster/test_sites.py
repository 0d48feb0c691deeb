# SPDX-License-Identifier: BSD-3-Clause
"""What sites have and labs have not: IPv6 alone, several daemons on one host, fixed ports behind a firewall, and daemons that find
nobody."""
import json
import os
import signal
import subprocess
import time

import pytest

from harness import stage

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='makes namespaces by ip(8), so root')


def ip(*words, check=True):
    return stage.run(['ip', *words], check=check)


class Site:
    """Hosts, which are network namespaces on one wire, and daemons on them."""

    def __init__(self, installation, folder):
        self.installation, self.folder = installation, folder
        self.spaces, self.daemons = [], {}

    def space(self, *addresses):
        """A host with these addresses. Returns its name."""
        name = f'motet-{os.getpid()}-{len(self.spaces)}'
        ip('netns', 'add', name)
        self.spaces.append(name)
        ip('-n', name, 'link', 'set', 'lo', 'up')
        if len(self.spaces) == 2:
            ip('-n', self.spaces[0], 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
        for one in self.spaces if len(self.spaces) == 2 else []:
            ip('-n', one, 'link', 'set', 'eth0', 'up')
        for address in addresses:
            words = ('nodad',) if ':' in address else ()
            ip('-n', name, 'addr', 'add', address, 'dev', 'eth0' if len(self.spaces) > 1 else 'lo', *words)
        return name

    def path(self, node, name):
        return str(self.folder / node / name)

    def start(self, space, node, *lines):
        """A daemon `node` with these lines in its [channel lan]."""
        os.makedirs(self.path(node, 'run'), exist_ok=True)
        with open(self.path(node, 'key'), 'w', encoding='utf-8') as key:
            key.write('key of a test, 32 bytes at least')
        os.chmod(self.path(node, 'key'), 0o600)
        with open(self.path(node, 'conf'), 'w', encoding='utf-8') as conf:
            conf.write('\n'.join(['[node]', f'name = {node}', f'key_file = {self.path(node, "key")}',
                                  f'runtime_dir = {self.path(node, "run")}', 'log_level = info', '[channel lan]', *lines, '']))
        words = ['ip', 'netns', 'exec', space, os.path.join(self.installation.prefix, 'sbin', 'motetd'), '-c', self.path(node, 'conf')]
        with open(self.path(node, 'log'), 'w', encoding='utf-8') as log:
            self.daemons[node] = space, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def on(self, node, *words, check=True):
        space = self.daemons[node][0]
        env = {**os.environ, 'MOTET_CLIENT_SOCKET': self.path(node, 'run/client.sock'),
               'MOTET_STATUS_SOCKET': self.path(node, 'run/status.sock')}
        return stage.run(['ip', 'netns', 'exec', space, *map(str, words)], check=check, env=env)

    def ask(self, node, *words):
        return json.loads(self.on(node, os.path.join(self.installation.prefix, 'bin', 'motetctl'), '--json', *words, check=False).stdout)

    def mpi(self, node, hosts, program):
        done = self.on(node, self.installation.mpiexec, '-n', len(hosts), '-ppn', 1, '-hosts', ','.join(hosts), program)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def log(self, node):
        with open(self.path(node, 'log'), encoding='utf-8') as log:
            return log.read()

    def wait(self, what, condition, within_s=20):
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, what + '\n' + '\n'.join(self.log(node) for node in self.daemons)
            time.sleep(0.1)

    def wait_all(self):
        """Every daemon can reach every other one."""
        for node in self.daemons:
            self.wait(f'{node} answers', lambda n=node: os.path.exists(self.path(n, 'run/status.sock')))
            self.wait(f'{node} reaches all', lambda n=node: sum(row['state'] in ('self', 'reachable', 'ok', 'up')
                                                                for row in self.ask(n, 'nodes')) == len(self.daemons))

    def end(self):
        for _, process in self.daemons.values():
            process.send_signal(signal.SIGTERM)
        for _, process in self.daemons.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
        for space in self.spaces:
            ip('netns', 'del', space, check=False)


@pytest.fixture
def site(installation, namespaces, tmp_path):
    one = Site(installation, tmp_path)
    yield one
    one.end()


@pytest.mark.parametrize('provider', ['tcp', 'udp'])
def test_ipv6_alone_and_fixed_ports(site, programs, provider):
    """A network without IPv4, seeds by IPv6, and nothing listens but on the two ports of each daemon."""
    a, b = site.space(), site.space('fd00:7::2/64')
    ip('-n', a, 'addr', 'add', 'fd00:7::1/64', 'dev', 'eth0', 'nodad')
    channel = ['cidr = fd00:7::/64', f'provider = {provider}', 'data_port = 7200', 'seeds = [fd00:7::1]:7117, fd00:7::2']
    site.start(a, 'n1', *channel)
    site.start(b, 'n2', *channel)
    site.wait_all()
    assert 'ok' in site.mpi('n1', ['n1', 'n2'], programs('pingpong'))
    listening = [line.split()[3].rsplit(':', 1)[1] for option in ('-ltnH', '-lunH')
                 for line in site.on('n1', 'ss', option).stdout.splitlines()]
    assert sorted(listening) == ['7117', '7200'], listening


def test_daemons_of_one_host(site, programs):
    """Two daemons on one address; the seed is the own address with the port of the other."""
    host = site.space()
    ip('-n', host, 'addr', 'add', '10.77.0.1/24', 'dev', 'lo')
    site.start(host, 'n1', 'cidr = 10.77.0.0/24', 'port = 7117')
    site.start(host, 'n2', 'cidr = 10.77.0.0/24', 'port = 7118', 'seeds = 10.77.0.1:7117, 10.77.0.1:7118')
    site.wait_all()
    assert 'ok' in site.mpi('n2', ['n1', 'n2'], programs('pingpong'))


def test_alone(site):
    """A daemon whose seeds do not answer says so, and when that is over."""
    a, b = site.space(), site.space('10.77.0.2/24')
    ip('-n', a, 'addr', 'add', '10.77.0.1/24', 'dev', 'eth0')
    site.start(a, 'n1', 'cidr = 10.77.0.0/24', 'seeds = 10.77.0.2:7117')
    site.wait('an answer', lambda: os.path.exists(site.path('n1', 'run/status.sock')))
    site.wait('the doctor says it', lambda: any(row['check'] == 'nodes' and row['state'] == 'fail' and
                                                '10.77.0.2:7117 (Connection refused)' in row['text'] for row in site.ask('n1', 'doctor')))
    site.wait('the log says it', lambda: 'this node is alone' in site.log('n1'))
    site.start(b, 'n2', 'cidr = 10.77.0.0/24')
    site.wait_all()
    site.wait('the log takes it back', lambda: 'not alone any more' in site.log('n1'))
