# SPDX-License-Identifier: BSD-3-Clause
"""
What is measured. A suite is a function that fills the table: table.add(system label, name, size, value, unit), once per repeat.

The implementations take turns within each repeat, so that a slow minute of the machine hits all of them.
"""
import glob
import os
import time

from . import borders, datagrams, faults, languages, shell
from .lab import Lab
from .systems import say

TCP = 'raw tcp'
KIB, MIB = 1 << 10, 1 << 20


def take_turns(bench, words_of, measures, timeout_s=300.0):
    """Runs every measure on every system, `repeats` times, one after the other. `measures`: (name, arguments, ranks)."""
    for repeat in range(bench.repeats):
        for name, arguments, n in measures:
            for system in bench.systems:
                program = [bench.programs.mpi(system), name, *arguments]
                try:
                    out, _ = shell.run(words_of(system, n, program), timeout_s, system.environ())
                except shell.Failed as error:
                    bench.table.fail(system.label, name, str(error))
                    continue
                found = shell.results_with_line(out)
                if not found:
                    bench.table.fail(system.label, name, f'no result\n{out}')
                for (result, size), (value, unit, line_ns) in found.items():
                    bench.table.add(system.label, result, size, value, unit, line_ns)
        say(f'  repeat {repeat + 1} of {bench.repeats} done')


def on_node(system, n, program):
    return system.launch(n, program)


def node(bench):
    """Two ranks on one node."""
    bench.table.begin('node', 'Two ranks on one node')
    quick = bench.quick
    take_turns(bench, on_node, [
        ('latency', [0, 8, 1024, 65536] if quick else [], 2),
        ('bandwidth', [4096, 65536, MIB, 4 * MIB] if quick else [], 2),
        ('rate', [8] if quick else [], 2),
        ('match', [0, 1000] if quick else [], 2),
        ('overlap', [4 * MIB] if quick else [], 2),
    ])
    # Where two threads of a rank starve one another this takes minutes: no result then.
    take_turns(bench, on_node, [('threads', [], 2)], 30.0)
    ring = bench.programs.plain('ring')
    for _ in range(bench.repeats):
        for (name, size), (value, unit) in shell.results(shell.run([ring])[0]).items():
            bench.table.add('ring', name, size, value, unit)


def coll(bench):
    """Every kind of collective on one node, blocking and nonblocking, as many ranks as cores and four times as many."""
    sizes = [8, 65536] if bench.quick else [8, 1024, 65536, 1048576]
    for n in ((8,) if bench.quick else (2, 8)):
        bench.table.begin(f'coll{n}', f'Collectives, {n} ranks on one node')
        take_turns(bench, on_node, [('collectives', sizes, n)])


def files(bench):
    """Collective writing and reading of a file that the system keeps in memory, on one node."""
    for n in (2, 4):
        bench.table.begin(f'files{n}', f'Collective access of a file, {n} ranks on one node')
        take_turns(bench, on_node, [('files', [MIB] if bench.quick else [], n)])


def between(bench, lab):
    """Systems and raw TCP between two nodes of a lab."""
    tcp = bench.programs.plain('tcp')
    quick = bench.quick
    latency = [8, 1024] if quick else [8, 64, 1024, 4096, 16384, 65536]
    stream = [65536, MIB, 4 * MIB] if quick else [4096, 16384, 65536, 262144, MIB, 4 * MIB, 16 * MIB]

    def words_of(system, n, program):
        return lab.words(lab.nodes[0], system.launch_on(lab, program))

    for _ in range(bench.repeats):
        for mode, sizes, name in (('latency', latency, 'latency'), ('stream', stream, 'bandwidth')):
            for (_, size), (value, unit) in lab.raw(tcp, mode, sizes).items():
                bench.table.add(TCP, name, size, value, unit)
    if not quick:
        for (_, size), (value, unit) in lab.raw(tcp, 'latency', [8], ['--block']).items():
            bench.table.add('tcp blocking', 'latency', size, value, unit)
    measures = [('latency', latency, 2), ('bandwidth', stream, 2), ('overlap', [4 * MIB] if quick else [MIB, 4 * MIB], 2)]
    if not quick:
        measures.append(('rate', [8], 2))
    take_turns(bench, words_of, measures)


def net(bench):
    """Two nodes: the link as fast as the machine makes it, then shaped to 1 Gbit/s with NetPIPE."""
    for rate in (None, '1gbit'):
        lab = Lab(bench.motet, bench.folder, rate)
        try:
            bench.table.begin(f'net_{rate or "full"}', f'Two nodes, one network, {rate or "unshaped"}, TCP congestion control '
                                                      f'{lab.congestion()}')
            between(bench, lab)
            if rate and bench.with_netpipe:
                netpipe(bench, lab)
        finally:
            lab.down()


def netpipe(bench, lab):
    """NPmpi against NPtcp. Both print bytes, Mbit/s and seconds of the best of their repeats."""
    np_mpi, np_tcp = bench.programs.netpipe()
    limits = ['-u', MIB, '-n', 10 if bench.quick else 50, '-p', 0]
    for _ in range(bench.repeats):
        out = os.path.join(bench.folder, 'np.out')
        server = shell.start(lab.words('n2', [np_tcp, *limits]))
        try:
            time.sleep(0.5)  # NPtcp's client does not try twice
            lab.run('n1', [np_tcp, '-h', lab.addresses[1], '-o', out, *limits], 300)
        finally:
            shell.stop(server)
        add_netpipe(bench, TCP, out)
        for system in bench.systems:
            if not system.abi:
                continue
            try:
                lab.run('n1', system.launch_on(lab, [np_mpi, '-o', out, *limits]), 300, system.environ())
                add_netpipe(bench, system.label, out)
            except shell.Failed as error:
                bench.table.fail(system.label, 'netpipe', str(error))


def add_netpipe(bench, label, out):
    with open(out, encoding='ascii') as lines:
        for line in lines:
            words = line.split()
            if len(words) >= 2 and int(words[0]) in (8, 1024, 65536, MIB):
                bench.table.add(label, 'netpipe', int(words[0]), float(words[1]), 'Mbit/s')
    os.unlink(out)


def start(bench):
    """Wall time of a whole job that only initializes and finalizes."""
    bench.table.begin('start', 'Start-up of a job that does nothing')
    for _ in range(bench.repeats * (1 if bench.quick else 3)):
        for n in (2, 8):
            for system in bench.systems:
                try:
                    _, taken = shell.run(system.launch(n, [bench.programs.mpi(system), 'start']), 120, system.environ())
                    bench.table.add(system.label, 'start', n, taken, 's')
                except shell.Failed as error:
                    bench.table.fail(system.label, 'start', str(error))


def wait(bench):
    """What waiting costs: ranks in MPI_Recv, and a daemon with nothing to do."""
    bench.table.begin('wait', 'Processor time of waiting, in percent of one core')
    seconds = 3 if bench.quick else 10
    for _ in range(bench.repeats if not bench.quick else 1):
        for system in bench.systems:
            program = [bench.programs.mpi(system), 'wait', seconds]
            try:
                out, _ = shell.run(system.launch(9, program), seconds + 120, system.environ())
                for (name, size), (value, unit) in shell.results(out).items():
                    bench.table.add(system.label, name, size, value, unit)
            except shell.Failed as error:
                bench.table.fail(system.label, 'wait', str(error))
    bench.table.add('motet', 'idle daemon', 0, idle_daemon(bench, 5 if bench.quick else 30), '%')


def cpu_s(pid):
    """Processor time of a process so far, from the kernel's accounting in nanoseconds, its threads together."""
    total = 0
    for path in glob.glob(f'/proc/{pid}/task/*/schedstat'):
        with open(path, encoding='ascii') as file:
            total += int(file.read().split()[0])
    return total / 1e9


def idle_daemon(bench, seconds):
    """Percent of a core that the two daemons of a lab take each, after they have settled."""
    lab = Lab(bench.motet, bench.folder)
    try:
        pids = []
        for path in glob.glob('/proc/[0-9]*/cmdline'):
            try:
                with open(path, 'rb') as file:
                    words = file.read().split(b'\0')
                if words[0].endswith(b'/motetd') and in_lab(path, lab):
                    pids.append(int(path.split('/')[2]))
            except OSError:
                pass
        if not pids:
            raise shell.Failed('the daemons of the lab are not to be found')
        time.sleep(3)
        before = {pid: cpu_s(pid) for pid in pids}
        time.sleep(seconds)
        used = sorted((cpu_s(pid) - before[pid]) / seconds * 100 for pid in pids)
        return used[-1]
    finally:
        lab.down()


def in_lab(path, lab):
    """Does the process of this /proc path belong to the lab? Its nodes' host names are n1 and n2 in namespaces of their own."""
    pid = path.split('/')[2]
    ours = os.readlink('/proc/self/ns/net')
    if os.readlink(f'/proc/{pid}/ns/net') == ours:
        return False
    parent = pid
    for _ in range(4):  # daemon, holder of the lab
        with open(f'/proc/{parent}/cmdline', 'rb') as file:
            if lab.name.encode() in file.read():
                return True
        with open(f'/proc/{parent}/stat', encoding='utf-8', errors='replace') as file:
            parent = file.read().rsplit(')', 1)[1].split()[1]
        if parent in ('0', '1'):
            return False
    return False


SUITES = {'node': node, 'net': net, 'coll': coll, 'files': files, 'borders': borders.borders, 'datagrams': datagrams.datagrams, 'wait': wait,
          'start': start, 'fortran': languages.fortran, 'faults': faults.faults}
