# SPDX-License-Identifier: BSD-3-Clause
"""
Two nodes on a network of datagrams: our driver beside raw UDP, which sends nothing again, and beside libfabric's provider (`ofi-udp`), in
turns; as fast as the machine makes it, then shaped, then with one and ten of a hundred datagrams lost.
"""
from . import shell
from .lab import Lab
from .systems import say

WHOLE = 1472  # of a datagram on Ethernet
MIB = 1 << 20
LABELS = {'udp': 'motet', 'ofi': 'ofi-udp'}
PROVIDERS = {'udp': 'udp', 'ofi': 'ofi-udp'}


def datagrams(bench):
    """A network of datagrams: our UDP driver, raw UDP, libfabric's UDP."""
    for rate in (None, '1gbit'):
        labs = []
        try:
            for network in LABELS:
                labs.append(Lab(bench.motet, bench.folder, rate, {network: ['n1', 'n2']}, providers=PROVIDERS))
            bench.table.begin(f'datagrams_{rate or "full"}', f'Two nodes, a network of datagrams, {rate or "unshaped"}')
            for repeat in range(bench.repeats):
                raw(bench, labs[0])
                for lab in labs:
                    ours(bench, lab)
                say(f'  repeat {repeat + 1} of {bench.repeats} done')
            for percent in (1, 10) if rate else ():
                bench.table.begin(f'datagrams_lost_{percent}', f'The same, {percent} of a hundred datagrams lost')
                lossy(bench, labs[0], percent)
        finally:
            for lab in labs:
                lab.down()


def sizes_of(bench):
    return ([8, 1024], [65536, MIB]) if bench.quick else ([8, 64, 1024, 65536], [4096, 65536, MIB, 4 * MIB])


def raw(bench, lab):
    udp = bench.programs.plain('udp')
    latency, stream = sizes_of(bench)
    for (_, size), (value, unit) in lab.raw(udp, 'latency', [size for size in latency if size <= WHOLE]).items():
        bench.table.add('raw udp', 'latency', size, value, unit)
    found = lab.raw(udp, 'stream', [WHOLE])
    for size in stream:
        bench.table.add('raw udp', 'bandwidth', size, *found['udp_stream', WHOLE])
    bench.table.add('raw udp', 'lost', WHOLE, *found['udp_lost', WHOLE])


def ours(bench, lab):
    latency, stream = sizes_of(bench)
    for name, sizes in (('latency', latency), ('bandwidth', stream)):
        program = [bench.programs.mpi(bench.motet), name, *sizes]
        try:
            out, _ = lab.run('n1', bench.motet.launch_on(lab, program), 120, bench.motet.environ())
        except shell.Failed as error:
            bench.table.fail(LABELS[lab.network], name, str(error))
            continue
        for (result, size), (value, unit) in shell.results(out).items():
            bench.table.add(LABELS[lab.network], result, size, value, unit)


def lossy(bench, lab, percent):
    for node in lab.nodes:
        lab.run(node, ['sh', '-c', 'nft add table inet loss && nft add chain inet loss in "{type filter hook input priority 0;}" && '
                                   f'nft add rule inet loss in meta l4proto udp numgen random mod 100 lt {percent} drop'])
    for _ in range(bench.repeats):
        ours(bench, lab)
    for node in lab.nodes:
        lab.run(node, ['nft', 'delete', 'table', 'inet', 'loss'])
