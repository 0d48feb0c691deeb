# SPDX-License-Identifier: BSD-3-Clause
"""
bench/run: measures Motet beside MPICH, Open MPI and Intel MPI, with the same programs, in turns, and prints medians and ratios.

Beside each row: the raw hand-over of a cache line between two ranks, which tells the phases of a virtual machine apart.

Missing peers are installed into virtual environments under ~/.cache/motet-bench (pip); Motet itself is taken from --motet, from
build/stage (quickstart), or built there. Results go to the terminal, and as JSON and SVG into the results folder.
"""
import argparse
import os
import sys
import tempfile
import time

from . import chart, report, shell, suites, systems
from .systems import say


class Bench:
    pass


def parse(argv):
    parser = argparse.ArgumentParser(prog='bench/run', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', action='append', choices=list(suites.SUITES), help='this part only (may be repeated)')
    parser.add_argument('--quick', action='store_true', help='few sizes and two repeats: a first impression in some minutes')
    parser.add_argument('--repeats', type=int, help='turns of each implementation (default 5; with --quick 2)')
    parser.add_argument('--seed', type=int, default=int(time.time()), help='of the moments of faults (default: from the clock, printed)')
    parser.add_argument('--motet', metavar='PREFIX', help='installation of Motet')
    parser.add_argument('--mpich', metavar='VENV', help='environment that holds MPICH ("no": leave it out)')
    parser.add_argument('--ompi', metavar='VENV', help='environment that holds Open MPI ("no": leave it out)')
    parser.add_argument('--impi', metavar='VENV', help='environment that holds Intel MPI ("no": leave it out)')
    parser.add_argument('--no-netpipe', action='store_true', help='without NetPIPE, whose sources are fetched by apt-get')
    parser.add_argument('--out', metavar='DIR', default='bench-results', help='where the JSON and SVG files go')
    return parser.parse_args(argv)


def add_peer(bench, name, option):
    """A peer that is not to be had has a column all the same, and the reason below the tables."""
    try:
        bench.systems.append(systems.find_peer(name, option))
    except shell.Failed as error:
        say(f'{systems.PEER_NAMES[name]} is not here: {error}')
        bench.table.absent[name] = f'{systems.PEER_NAMES[name]}: {str(error).strip().splitlines()[0]}'


def main(argv=None):
    args = parse(argv)
    bench = Bench()
    bench.quick = args.quick
    bench.repeats = args.repeats or (2 if args.quick else 5)
    bench.seed = args.seed
    bench.with_netpipe = not args.no_netpipe
    bench.table = report.Table()
    facts = report.machine()
    if facts['load'] > 0.5:
        say(f'note: something else is running here (load {facts["load"]:.1f}); take no figure of this run for good')
    if facts['cores'] < 2:
        say('note: one core only: figures between two ranks show the scheduler')
    try:
        bench.motet = systems.find_motet(args.motet)
        bench.systems = [bench.motet]
        for name in systems.PEER_PACKAGES:
            # Faults and datagrams are ours alone.
            if getattr(args, name) != 'no' and not set(args.only or ['all']) <= {'faults', 'datagrams'}:
                add_peer(bench, name, getattr(args, name))
        bench.programs = systems.Programs(os.path.join(systems.CACHE, 'programs'), bench.motet)
        with tempfile.TemporaryDirectory(prefix='motet-bench-') as bench.folder:
            for name in args.only or [name for name in suites.SUITES if name != 'faults']:
                say(f'{name}: {suites.SUITES[name].__doc__.strip().splitlines()[0]}')
                try:
                    suites.SUITES[name](bench)
                except shell.Failed as error:
                    bench.table.fail('all', name, str(error))
                    say(f'  {name} failed: {error}')
    except shell.Failed as error:
        say(f'bench/run: {error}')
        return 1
    except KeyboardInterrupt:
        say('interrupted; what was measured so far:')
    print(report.text_of(bench.table))
    if args.only != ['faults']:
        print(report.goals_text(bench.table))
    os.makedirs(args.out, exist_ok=True)
    report.write_json(bench.table, os.path.join(args.out, 'results.json'), facts)
    if chart.write_svg(bench.table, os.path.join(args.out, 'results.svg')):
        print(f'\nwritten: {args.out}/results.json, {args.out}/results.svg')
    for section, label, name, text in bench.table.failures:
        print(f'\nfailed: {section}, {label}, {name}\n{text}', file=sys.stderr)
    return 1 if bench.table.failures else 0
