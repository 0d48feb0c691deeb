# SPDX-License-Identifier: BSD-3-Clause
"""A cluster made by motet-lab: by default two nodes on one network, in which every implementation and raw TCP run."""
import json
import os
import stat

from . import shell

PORT = 7700


class Lab:
    """Up from construction to `down`. `rate` is a tc rate ("1gbit") of every network, or None. `networks`: their nodes by name; `rates`,
    `providers`: those of single networks (default: as all, and tcp)."""

    def __init__(self, motet, folder, rate=None, networks=None, rates=None, providers=None):
        networks = networks or {'lan': ['n1', 'n2']}
        self.network = next(iter(networks))  # the first, or only one
        self.nodes = list(dict.fromkeys(node for nodes in networks.values() for node in nodes))
        self.motet_lab = motet.path('motet-lab')
        self.name = f'bench-{os.getpid()}-{rate or "full"}-{self.network}'
        self.rate = rate
        self.port = PORT
        file = os.path.join(folder, f'{self.name}.lab')
        with open(file, 'w', encoding='ascii') as out:
            for network, nodes in networks.items():
                out.write(f'[network {network}]\nprovider = {(providers or {}).get(network, "tcp")}\nnodes = {" ".join(nodes)}\n')
                if (rates or {}).get(network, rate):
                    out.write(f'rate = {(rates or {}).get(network, rate)}\n')
        shell.run([self.motet_lab, 'up', '--name', self.name, '--watch', os.getpid(), file], 120)
        os.unlink(file)
        state = json.loads(shell.run([self.motet_lab, 'status', '--name', self.name, '--json'], 30)[0])
        self.addresses = [next(iter(node['addresses'].values())) for node in state['nodes']]
        # Process numbers as the nodes see them: how one node's launcher gets into another one, where a cluster has ssh.
        self.pids = [node['pid'] for node in state['nodes']]
        self.agent = os.path.join(folder, f'{self.name}.agent')
        with open(self.agent, 'w', encoding='ascii') as out:
            out.write('#!/bin/sh\n# host command...: what ssh is elsewhere\n'
                      'while [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\ncase $host in\n')
            for address, node, pid in zip(self.addresses, self.nodes, self.pids):
                out.write(f'{address}|{node}) exec nsenter -t {pid} -n -u -i -m -- sh -c "$*";;\n')
            out.write('esac\necho "no node $host" >&2\nexit 1\n')
        os.chmod(self.agent, os.stat(self.agent).st_mode | stat.S_IXUSR)

    def words(self, node, words):
        return [self.motet_lab, '--name', self.name, 'exec', node, '--', *words]

    def run(self, node, words, timeout_s=120.0, env=None):
        return shell.run(self.words(node, words), timeout_s, env)

    def order(self, *words):
        """What motet-lab itself does: cut, heal, kill, start, wait."""
        return shell.run([self.motet_lab, words[0], '--name', self.name, *words[1:]], 60)

    def congestion(self):
        return self.run('n1', ['cat', '/proc/sys/net/ipv4/tcp_congestion_control'])[0].strip()

    def raw(self, program, mode, sizes, options=()):
        """Raw TCP or UDP between the nodes, by its program: mode 'latency' or 'stream'. Returns the results."""
        self.port += 1  # the last connection may still linger
        server = shell.start(self.words('n2', [program, 'serve', self.addresses[1], self.port, '--cpu', 1]))
        try:
            words = [program, mode, self.addresses[1], self.port, '--cpu', 0, *options, *sizes]
            return shell.results(self.run('n1', words)[0])
        finally:
            shell.stop(server)

    def down(self):
        for path in (self.agent,):
            if os.path.exists(path):
                os.unlink(path)
        shell.run([self.motet_lab, 'down', '--name', self.name], 60)
