# SPDX-License-Identifier: BSD-3-Clause
"""random_networks.py COLLECTIVES BORDERS SEED N: both programs of the fake over N random clusters: 1 to 13 ranks on 1 to 7 nodes of 1 to 5
networks, joined to a tree or a ring by gateways with ranks or without. Results must be right by the default choice of algorithms and with
the levels forced; every payload crosses each border once. A failure prints the command that repeats it."""
import os
import random
import subprocess
import sys

FAMILIES = ['BARRIER', 'BCAST', 'GATHER', 'SCATTER', 'ALLGATHER', 'REDUCE', 'ALLREDUCE', 'REDUCE_SCATTER', 'SCAN']


def draw(rand):
    """Arguments of the fake, and whether the networks form a tree in which no node has two ways to another."""
    n_ranks = rand.randint(1, 13)
    n_nodes = rand.randint(1, min(n_ranks, 7))
    networks = [set() for _ in range(rand.randint(1, 5))]
    empty = iter(range(n_nodes, 64))  # nodes without ranks
    is_tree = True
    for i in range(1, len(networks)):
        other = i - 1 if rand.random() < 0.5 else rand.randrange(i)
        gateway = rand.randrange(n_nodes) if rand.random() < 0.5 else next(empty)
        # A gateway that joins a second pair of networks may close a circle.
        is_tree = is_tree and not any(gateway in network for network in networks)
        networks[i].add(gateway)
        networks[other].add(gateway)
    if len(networks) > 2 and rand.random() < 0.3:
        is_tree = False
        gateway = next(empty)
        networks[0].add(gateway)
        networks[-1].add(gateway)
    for node in range(n_nodes):
        if not any(node in network for network in networks):
            rand.choice(networks).add(node)
    for network in networks:
        if not network:
            network.add(next(empty))
    shape = '/'.join(','.join(map(str, sorted(network))) for network in networks)
    return ['-n', str(n_ranks), '-N', str(n_nodes), '-t', shape, '-p', rand.choice('rtd'), '-s', str(rand.randrange(1, 1 << 20))], is_tree


def run(words, levels):
    forced = {f'MOTET_COLL_{family}': levels for family in FAMILIES} if levels else {}
    done = subprocess.run(words, env=dict(os.environ, **forced), capture_output=True, text=True, timeout=150, check=False)
    if done.returncode == 0:
        return True
    print(*(f'{name}={value}' for name, value in forced.items()), *words)
    print(f'exit code {done.returncode}', done.stdout[-2000:], done.stderr[-2000:])
    return False


def main(collectives, borders, seed, n):
    rand = random.Random(int(seed))
    passed = True
    for _ in range(int(n)):
        cluster, is_tree = draw(rand)
        passed &= run([collectives, *cluster, '17'], rand.choice(['', 'nodes', 'networks']))
        passed &= run([borders, *cluster, 'tree' if is_tree else 'ring'], '')
    return 0 if passed else 1


sys.exit(main(*sys.argv[1:]))
