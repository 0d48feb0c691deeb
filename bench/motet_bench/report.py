# SPDX-License-Identifier: BSD-3-Clause
"""Results: collecting, medians, comparison, and how they are shown. A loss is shown as plainly as a win."""
import json
import math
import os
import platform
import statistics

OURS = 'motet'
MORE_IS_BETTER = {'GB/s', 'MB/s', 'M/s', 'Mbit/s'}
# Not rivals but limits: what the machine does without MPI.
LIMITS = {'raw tcp', 'raw udp', 'tcp blocking', 'ring'}


def better_high(name, unit):
    return unit in MORE_IS_BETTER or name.startswith('overlap')


def quotient(ours, peer, high):
    """Above 1: ours is better."""
    if high:
        return ours / peer if peer > 0 else None if ours == 0 else math.inf
    return peer / ours if ours > 0 else math.inf


class Table:
    def __init__(self):
        self.sections = {}  # key: (title, {(name, size): {label: [values]}})
        self.units = {}
        self.lines = {}  # (section, name, size): {label: [ns of a raw hand-over of a cache line, beside each value]}
        self.failures = []
        self.absent = {}  # label of a peer that is not here: why
        self.current = None

    def begin(self, key, title):
        self.current = key
        self.sections[key] = (title, {})

    def add(self, label, name, size, value, unit, line_ns=None):
        self.units[name] = unit
        if line_ns is not None:
            self.lines.setdefault((self.current, name, size), {}).setdefault(label, []).append(line_ns)
        self.sections[self.current][1].setdefault((name, size), {}).setdefault(label, []).append(value)

    def fail(self, label, name, text):
        self.failures.append((self.current, label, name, text))

    def value(self, section, label, name, size):
        """Median, or None."""
        values = self.sections.get(section, ('', {}))[1].get((name, size), {}).get(label)
        return statistics.median(values) if values else None

    def labels(self, section):
        found = []
        for row in self.sections[section][1].values():
            found += [label for label in row if label not in found]
        found += [label for label in self.absent if label not in found]
        return sorted(found, key=lambda label: (label in LIMITS, label != OURS, label))

    def ratio(self, section, key):
        """How we stand against the best peer: above 1 is better than it. None where there is no comparison.

        The median of the ratios of turns that followed one another: what a slow minute did to both is not in it."""
        name = key[0]
        row = self.sections[section][1][key]
        peers = {label: statistics.median(values) for label, values in row.items() if label != OURS and label not in LIMITS}
        if OURS not in row or not peers:
            return None
        high = better_high(name, self.units[name])
        theirs = row[max(peers, key=peers.get) if high else min(peers, key=peers.get)]
        if len(theirs) != len(row[OURS]):  # one of the two failed once: nobody knows which turns belong together
            return quotient(statistics.median(row[OURS]), statistics.median(theirs), high)
        ratios = [quotient(ours, peer, high) for ours, peer in zip(row[OURS], theirs)]
        return None if None in ratios else statistics.median(ratios)

    def line(self, section, key):
        """(least, most) of the medians of the raw hand-over beside this row's values: far apart, they were not taken alike. None: no line."""
        medians = [statistics.median(values) for values in self.lines.get((section, *key), {}).values()]
        return (min(medians), max(medians)) if medians else None


def number(value):
    if value is None:
        return '-'
    return f'{value:.3g}' if value < 1000 else f'{value:.0f}'


def verdict(ratio):
    if ratio is None:
        return ''
    if ratio >= 1.03:
        return f'{ratio:6.2f} better'
    return f'{ratio:6.2f} equal' if ratio > 0.97 else f'{ratio:6.2f} WORSE'


def line_text(line):
    """One number while they differ by less than a fifth."""
    if line is None:
        return ''
    return number(line[0]) if line[1] <= 1.2 * line[0] else f'{number(line[0])}..{number(line[1])}'


def text_of(table):
    lines = []
    for section, (title, rows) in table.sections.items():
        labels = table.labels(section)
        lines += ['', title, '']
        head = f'{"":16}{"size":>10} {"unit":7}' + ''.join(f'{label:>13}' for label in labels) + f'{"line, ns":>14}' + '   against the best peer'
        lines += [head, '-' * len(head)]
        for name, size in rows:
            unit, line = table.units[name], line_text(table.line(section, (name, size)))
            values = ''.join(f'{number(table.value(section, label, name, size)):>13}' for label in labels)
            lines.append(f'{name:16}{size:>10} {unit:7}{values}{line:>14}   {verdict(table.ratio(section, (name, size)))}')
    lost = [(table.ratio(section, key), section, key) for section, (_, rows) in table.sections.items() for key in rows]
    lost = sorted((r, s, k) for r, s, k in lost if r is not None and r <= 0.97)
    n_compared = sum(1 for section, (_, rows) in table.sections.items() for key in rows if table.ratio(section, key) is not None)
    lines += ['', f'{n_compared} comparisons with the best peer, {len(lost)} of them lost:']
    lines += [f'  {r:5.2f}  {section}: {name} {size}' for r, section, (name, size) in lost] or ['  none']
    if table.absent:
        lines += ['', 'Not here, and so not compared with:', *(f'  {text}' for text in table.absent.values())]
    if table.failures:
        lines += ['', 'Failed runs:']
        lines += [f'  {section}: {label} {name}: {text.strip().splitlines()[0]}' for section, label, name, text in
                  table.failures]
    return '\n'.join(lines)


def goals(table):
    """What the project promised, with the measured value: (text, measured, reached or None where not measured)."""
    mib = 1 << 20

    def at(section, label, name, size):
        return table.value(section, label, name, size)

    def over(a, b):
        return a / b if a is not None and b else None

    checks = [
        ('8 bytes within a node against Open MPI (time, at most 1)',
         over(at('node', OURS, 'latency', 8), at('node', 'ompi', 'latency', 8)), lambda v: v <= 1),
        ('4 MiB within a node against MPICH (bandwidth, at least 1)',
         over(at('node', OURS, 'bandwidth', 4 * mib), at('node', 'mpich', 'bandwidth', 4 * mib)), lambda v: v >= 1),
        ('NPmpi against NPtcp at 1 MiB on 1 Gbit/s (at least 0.95)',
         over(at('net_1gbit', OURS, 'netpipe', mib), at('net_1gbit', 'raw tcp', 'netpipe', mib)), lambda v: v >= 0.95),
        ('8 bytes between two nodes against spinning TCP (time, at most 2.2)',
         over(at('net_full', OURS, 'latency', 8), at('net_full', 'raw tcp', 'latency', 8)), lambda v: v <= 2.2),
        ('an idle daemon, percent of a core (below 0.1)', at('wait', OURS, 'idle daemon', 0), lambda v: v < 0.1),
        *[(f'8 bytes from Fortran, {binding}, against C (time, at most 1.05)', at('fortran', OURS, f'{binding}/C', 8), lambda v: v <= 1.05)
          for binding in ('mpif.h', 'mpi', 'mpi_f08')],
        ('8 ranks in MPI_Recv, percent of a core together (below 2)', at('wait', OURS, 'wait', 8), lambda v: v < 2),
    ]
    return [(text, value, None if value is None else bool(test(value))) for text, value, test in checks]


def goals_text(table):
    lines = ['', 'Goals:']
    for text, value, reached in goals(table):
        state = 'not measured' if reached is None else 'reached' if reached else 'MISSED'
        lines.append(f'  {state:13} {number(value):>8}  {text}')
    return '\n'.join(lines)


def machine():
    model = ''
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            model = next((line.split(':', 1)[1].strip() for line in file if line.startswith('model name')), '')
    except OSError:
        pass
    return {'cores': len(os.sched_getaffinity(0)), 'processor': model, 'kernel': platform.release(),
            'load': os.getloadavg()[0]}


def write_json(table, path, facts):
    data = {'version': 1, 'machine': facts, 'absent': table.absent, 'sections': {}, 'failures': [list(f) for f in table.failures],
            'goals': [{'goal': t, 'value': v, 'reached': r} for t, v, r in goals(table)]}
    for section, (title, rows) in table.sections.items():
        data['sections'][section] = {'title': title, 'rows': [
            {'name': name, 'size': size, 'unit': table.units[name], 'values': values,
             'line_ns': table.lines.get((section, name, size), {}), 'medians': {label: statistics.median(v) for label, v in values.items()}}
            for (name, size), values in rows.items()]}
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(data, file, indent=1)
        file.write('\n')
