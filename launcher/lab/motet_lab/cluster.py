# SPDX-License-Identifier: BSD-3-Clause
"""A lab file, read and checked: which nodes there are, on which networks, at which addresses.

The file is an INI file; every complaint names file and line. Addresses follow from the order in the file: the n-th network is
10.n.0.0/16 and the k-th node of the lab has the host part k on each of its networks, so an address tells network and node.
"""
import re

MAX_NETWORKS = 250
MAX_NODES = 250  # one octet of the address
NAME = re.compile(r'^[A-Za-z0-9][A-Za-z0-9_-]{0,11}$')  # also an interface name, 15 bytes at most, with room for a suffix
RATE = re.compile(r'^([0-9]+(?:\.[0-9]+)?)([kmgt])?(bit|bps)$')
TIME = re.compile(r'^[0-9]+(\.[0-9]+)?(us|ms|s)$')


class LabFileError(Exception):
    """The lab file says something that cannot be; the text is for the user."""


class Network:
    """One network: a bridge in the lab. `number` is the second octet of its addresses."""

    def __init__(self, name, number):
        self.name = name
        self.number = number
        self.provider = 'tcp'
        self.rate = None
        self.mtu = 1500
        self.delay = None
        self.loss = None
        self.nodes = []

    def address(self, node):
        return f'10.{self.number}.0.{node.number}'

    def bytes_per_second(self):
        """The rate as a number; tc's units: bit is bits and bps is bytes a second, prefixes are powers of ten."""
        number, prefix, unit = RATE.match(self.rate).groups()
        factor = {None: 1, 'k': 10**3, 'm': 10**6, 'g': 10**9, 't': 10**12}[prefix]
        return int(float(number) * factor / (8 if unit == 'bit' else 1))

    def describe(self):
        parts = [self.provider, self.rate or 'unshaped', f'mtu {self.mtu}']
        parts += [f'delay {self.delay}'] if self.delay else []
        parts += [f'loss {self.loss}'] if self.loss else []
        return ', '.join(parts)


class Node:
    """One node. `number` is the last octet of its addresses; `settings` are lines for its motetd.conf, by section."""

    def __init__(self, name, number):
        self.name = name
        self.number = number
        self.networks = []
        self.settings = []


class Cluster:
    """Everything a lab file says. `settings` are (section, key, value) for the motetd.conf of all nodes."""

    def __init__(self, path):
        self.path = path
        self.name = None
        self.congestion = 'cubic'
        self.networks = []
        self.nodes = []
        self.settings = []

    def node(self, name):
        return next((n for n in self.nodes if n.name == name), None)

    def network(self, name):
        return next((n for n in self.networks if n.name == name), None)

    def reachable(self):
        """For each node's name the set of the other nodes' names that some chain of networks leads to."""
        groups = {n.name: {n.name} for n in self.nodes}
        for network in self.networks:
            joined = set().union(*(groups[n.name] for n in network.nodes))
            for name in joined:
                groups[name] = joined
        return {name: group - {name} for name, group in groups.items()}


def read_lines(path):
    """Yields (line number, section words or None, key, value); a section header comes with key None."""
    try:
        with open(path, encoding='utf-8') as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabFileError(f'{path}: {getattr(error, "strerror", None) or error}') from None
    section = None
    for number, line in enumerate(lines, 1):
        line = re.sub(r'(^|\s)[#;].*$', '', line).strip()
        if not line:
            continue
        if line.startswith('['):
            if not line.endswith(']'):
                raise LabFileError(f'{path}:{number}: a section ends in "]"')
            section = line[1:-1].split()
            yield number, section, None, None
        elif '=' not in line:
            raise LabFileError(f'{path}:{number}: expected "key = value" or "[section]", not "{line}"')
        elif section is None:
            raise LabFileError(f'{path}:{number}: a value before the first [section]')
        else:
            key, value = (part.strip() for part in line.split('=', 1))
            yield number, section, key, value


def check(condition, where, text):
    if not condition:
        raise LabFileError(f'{where}: {text}')


def set_network(network, key, value, where):
    if key == 'provider':
        network.provider = value
    elif key == 'rate':
        check(RATE.match(value), where, f'rate = {value}: expected a number with unit, like 1gbit or 100mbit')
        network.rate = value
    elif key == 'mtu':
        check(value.isdigit() and 576 <= int(value) <= 65521, where, f'mtu = {value}: expected 576 to 65521')
        network.mtu = int(value)
    elif key == 'delay':
        check(TIME.match(value), where, f'delay = {value}: expected a time with unit, like 200us or 5ms')
        network.delay = value
    elif key == 'loss':
        check(re.match(r'^[0-9]+(\.[0-9]+)?%$', value), where, f'loss = {value}: expected a percentage, like 0.1%')
        network.loss = value
    else:
        check(False, where, f'unknown key "{key}": [network] knows nodes, provider, rate, mtu, delay, loss')


def join(cluster, network, names, where):
    """Puts nodes on a network, making those that appear for the first time."""
    for name in names:
        check(NAME.match(name), where, f'"{name}" is no name for a node: letters, digits, - and _, at most 12')
        node = cluster.node(name)
        if node is None:
            check(len(cluster.nodes) < MAX_NODES, where, f'more than {MAX_NODES} nodes')
            node = Node(name, len(cluster.nodes) + 1)
            cluster.nodes.append(node)
        check(node not in network.nodes, where, f'node {name} is on network {network.name} already')
        network.nodes.append(node)
        node.networks.append(network)


def read(path):
    """Reads a lab file. Raises LabFileError."""
    cluster = Cluster(path)
    pending = []  # settings of nodes, which may stand before the network that brings the node
    for number, section, key, value in read_lines(path):
        where = f'{path}:{number}'
        kind, names = section[0] if section else '', section[1:]
        if key is None:
            if kind == 'network':
                check(len(names) == 1 and NAME.match(names[0]), where,
                      'expected [network NAME], a name of letters, digits, - and _, at most 12')
                check(cluster.network(names[0]) is None, where, f'network {names[0]} stands here twice')
                check(len(cluster.networks) < MAX_NETWORKS, where, f'more than {MAX_NETWORKS} networks')
                cluster.networks.append(Network(names[0], len(cluster.networks) + 1))
            else:
                check(kind in ('lab', 'node', 'motetd'), where,
                      f'unknown section [{" ".join(section)}]: expected [lab], [network NAME], [node NAME], [motetd]')
                check(kind != 'node' or len(names) == 1, where, 'expected [node NAME]')
        elif kind == 'network':
            network = cluster.network(names[0])
            if key == 'nodes':
                join(cluster, network, value.replace(',', ' ').split(), where)
            else:
                set_network(network, key, value, where)
        elif kind == 'lab':
            check(key in ('name', 'congestion'), where, f'unknown key "{key}": [lab] knows name, congestion')
            setattr(cluster, key, value)
        else:
            target, _, real_key = key.rpartition('.')
            pending.append((where, names[0] if kind == 'node' else None, target or 'node', real_key, value))
    check(cluster.networks, path, 'no [network NAME] in it')
    check(all(network.nodes for network in cluster.networks), path, 'a network without nodes = ...')
    for where, name, section, key, value in pending:
        owner = cluster.node(name) if name else cluster
        check(owner, where, f'node {name} is on no network')
        owner.settings.append((section, key, value))
    return cluster
