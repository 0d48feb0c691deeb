# SPDX-License-Identifier: BSD-3-Clause
"""
Collectives over three networks in a row, the one in the middle slow: in levels over the networks (what the library chooses), in levels over
the nodes only, and by the algorithms that know neither. All of them Motet, in turns.
"""
from . import shell
from .lab import Lab
from .systems import say

RATES = {'left': '1gbit', 'middle': '100mbit', 'right': '1gbit'}
NETWORKS = {'left': ['a1', 'a2', 'gw1'], 'middle': ['gw1', 'm1', 'gw2'], 'right': ['gw2', 'c1', 'c2']}
HOSTS = ['a1', 'a2', 'm1', 'c1', 'c2']
PER_NODE = 2
MESSAGES = ('bcast', 'reduce', 'allreduce', 'scan', 'ibcast', 'iallreduce')  # one payload; all others: a block for each rank
# What the library takes without levels, short and long, by the names in the table of algorithms.
FLAT = {
    'barrier': ('dissemination', 'dissemination'),
    'bcast': ('binomial', 'binomial'),
    'reduce': ('binomial', 'rabenseifner'),
    'allreduce': ('recursive_doubling', 'rabenseifner'),
    'gather': ('binomial', 'linear'),
    'scatter': ('binomial', 'linear'),
    'allgather': ('bruck', 'ring'),
    'reduce_scatter': ('halving', 'pairwise'),
    'scan': ('doubling', 'doubling'),
}
# Each collective's name there.
KINDS = {name: name for name in FLAT if name != 'reduce_scatter'}
KINDS.update(allgatherv='allgather', red_scat_block='reduce_scatter', ibcast='bcast', iallreduce='allreduce')


def borders(bench):
    """Collectives over three networks and two gateways, with and without levels."""
    lab = Lab(bench.motet, bench.folder, 'borders', NETWORKS, RATES)
    try:
        for placement, words in (('in rows', ['-ppn', PER_NODE]), ('in turn', [])):
            bench.table.begin(f'borders_{placement[3:]}', f'{PER_NODE * len(HOSTS)} ranks {placement} on {len(HOSTS)} nodes of three networks, '
                                                         f'two gateways; 1 Gbit/s, in the middle 100 Mbit/s')
            for repeat in range(bench.repeats):
                for name in KINDS:
                    for size in sizes_of(bench, name):
                        run_all(bench, lab, words, name, size)
                say(f'  ranks {placement}, repeat {repeat + 1} of {bench.repeats} done')
    finally:
        lab.down()


def sizes_of(bench, name):
    """Long: many times what a shaped network lets through before it slows down."""
    if name == 'barrier':
        return [0]
    block = name not in MESSAGES
    if bench.quick:
        return [8, 1 << 17 if block else 1 << 20]
    return [8, 1024, 16384, 1 << 17] + ([] if block else [1 << 20, 4 << 20])


def run_all(bench, lab, words, name, size):
    family = KINDS[name]
    short, long = FLAT[family]
    program = [bench.programs.mpi(bench.motet), 'collectives', name, size]
    for label, algorithm in (('motet', None), ('nodes', 'nodes'), ('flat', short if size <= 1024 else long)):
        environment = dict(bench.motet.environ(), **({f'MOTET_COLL_{family.upper()}': algorithm} if algorithm else {}))
        try:
            out, _ = lab.run(HOSTS[0], [bench.motet.path('mpiexec'), '-n', PER_NODE * len(HOSTS), *words, '-hosts', ','.join(HOSTS),
                                        '-bind-to', 'none', *program], 120, environment)
        except shell.Failed as error:
            bench.table.fail(label, name, str(error))
            continue
        for (result, at), (value, unit) in shell.results(out).items():
            bench.table.add(label, result, at, value, unit)
