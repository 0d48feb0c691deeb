# SPDX-License-Identifier: BSD-3-Clause
"""
bench/tune: measures every algorithm of every collective by force, in turns, and writes the fastest ones as a table for MOTET_COLL_TABLE
(or collectives.json in the configuration folder). On this machine, or over nodes of a cluster with --hosts. Between two measured sizes the
border lies at their geometric mean; a rank count that was not measured uses the next larger one.
"""
import argparse
import json
import math
import os
import statistics
import sys

from . import shell, systems
from .systems import say

# Collective of the benchmark program, algorithms, and what the table counts as bytes: a block, or all ranks' blocks.
FAMILIES = {
    'barrier': ('barrier', ['dissemination', 'nodes', 'networks', 'shared'], 'none'),
    'bcast': ('bcast', ['binomial', 'scatter_allgather', 'pipeline', 'nodes', 'networks', 'shared'], 'block'),
    'gather': ('gather', ['binomial', 'linear', 'nodes', 'networks', 'shared'], 'block'),
    'scatter': ('scatter', ['binomial', 'linear', 'nodes', 'networks', 'shared'], 'block'),
    'allgather': ('allgather', ['recursive_doubling', 'bruck', 'ring', 'nodes', 'networks', 'shared'], 'total'),
    'alltoall': ('alltoall', ['bruck', 'linear', 'pairwise', 'shared'], 'block'),
    'reduce': ('reduce', ['binomial', 'rabenseifner', 'nodes', 'networks', 'shared'], 'block'),
    'allreduce': ('allreduce', ['recursive_doubling', 'rabenseifner', 'ring', 'nodes', 'networks', 'shared'], 'block'),
    'reduce_scatter': ('red_scat_block', ['halving', 'pairwise', 'reduce_scatter', 'nodes', 'networks', 'shared'], 'total'),
    'scan': ('scan', ['doubling', 'nodes', 'networks', 'shared'], 'block'),
}
SIZES = [8, 256, 1024, 4096, 16384, 65536, 262144, 1048576]
# Less than this is noise: the algorithm of the next smaller size stays.
WORTH = 0.95


def parse(argv):
    parser = argparse.ArgumentParser(prog='bench/tune', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('output', help='the file to write')
    parser.add_argument('--motet', metavar='PREFIX', help='installation of Motet')
    parser.add_argument('--ranks', type=int, action='append', help='number of ranks (may be repeated; default 2, 4, 8)')
    parser.add_argument('--size', type=int, action='append', help='bytes (may be repeated; default 8 to 1 Mi)')
    parser.add_argument('--only', action='append', choices=list(FAMILIES), help='this collective only (may be repeated)')
    parser.add_argument('--hosts', metavar='NODES', help='nodes of a running cluster, for the shape "nodes" or "networks"')
    parser.add_argument('--shape', choices=['any', 'node', 'nodes', 'networks'], help='where the rules shall hold (default: node '
                        'without --hosts, nodes with them)')
    parser.add_argument('--repeats', type=int, default=3, help='turns of each algorithm (default 3)')
    return parser.parse_args(argv)


def measure(motet, program, args, family, n, algorithm):
    """{size: us} of one run."""
    name = FAMILIES[family][0]
    words = [motet.path('mpiexec'), '-n', n, '-bind-to', 'none']
    if args.hosts:
        words += ['-hosts', args.hosts]
    environment = dict(motet.environ(), **{f'MOTET_COLL_{family.upper()}': algorithm})
    out, _ = shell.run([*words, program, 'collectives', name, *args.size], 300, environment)
    return {size: value for (_, size), (value, _) in shell.results(out).items()}


def best_of(times):
    """{size: algorithm} from {algorithm: {size: us}}; a change of algorithm must be worth it."""
    chosen, before = {}, None
    for size in sorted({size for row in times.values() for size in row}):
        row = {algorithm: values[size] for algorithm, values in times.items() if size in values}
        fastest = min(row, key=row.get)
        if before in row and row[fastest] > WORTH * row[before]:
            fastest = before
        chosen[size] = before = fastest
    return chosen


def rules_of(chosen, counts, n, low, high, shape):
    """The rules for between low and high ranks, measured with n."""
    rules, sizes = [], sorted(chosen)
    for i, size in enumerate(sizes):
        if i + 1 < len(sizes) and chosen[sizes[i + 1]] == chosen[size]:
            continue
        rule = {'algorithm': chosen[size], 'min_ranks': low}
        if high:
            rule['max_ranks'] = high
        if shape != 'any':
            rule['shape'] = shape
        if i + 1 < len(sizes):
            scale = n if counts == 'total' else 1
            rule['max_bytes'] = int(math.sqrt(size * sizes[i + 1])) * scale
        rules.append(rule)
    return rules


def tune(motet, program, args):
    table = {}
    for family in args.only or FAMILIES:
        _, algorithms, counts = FAMILIES[family]
        low = 2
        for k, n in enumerate(sorted(args.ranks)):
            runs = {algorithm: [] for algorithm in algorithms}
            for _ in range(args.repeats):
                for algorithm in algorithms:
                    runs[algorithm].append(measure(motet, program, args, family, n, algorithm))
            times = {algorithm: {size: statistics.median(run[size] for run in found) for size in found[0]}
                     for algorithm, found in runs.items()}
            for algorithm, row in times.items():
                say(f'{family:15}{n:3} ranks  {algorithm:20}' + ''.join(f'{size:>9}: {us:9.2f}' for size, us in row.items()))
            high = None if k + 1 == len(args.ranks) else n
            table.setdefault(family, []).extend(rules_of(best_of(times), counts, n, low, high, args.shape))
            low = n + 1
    return table


def main(argv=None):
    args = parse(argv)
    args.ranks = args.ranks or [2, 4, 8]
    args.size = args.size or SIZES
    args.shape = args.shape or ('nodes' if args.hosts else 'node')
    try:
        motet = systems.find_motet(args.motet)
        program = systems.Programs(os.path.join(systems.CACHE, 'programs'), motet).mpi(motet)
        table = tune(motet, program, args)
    except shell.Failed as error:
        say(f'bench/tune: {error}')
        return 1
    with open(args.output, 'w', encoding='ascii') as file:
        json.dump({'version': 1, 'rules': table}, file, indent=1)
        file.write('\n')
    print(f'written: {args.output}; use it with MOTET_COLL_TABLE={args.output}', file=sys.stderr)
    return 0
