# SPDX-License-Identifier: BSD-3-Clause
"""Curves over the message size as one SVG: a panel per measure, both axes logarithmic."""
import math
from xml.sax.saxutils import escape

COLOURS = {'motet': '#c0392b', 'mpich': '#2c6fbb', 'ompi': '#2e8b57', 'impi': '#e08e1b', 'raw tcp': '#555555', 'tcp blocking': '#aaaaaa',
           'ring': '#8e6bbf'}
WIDTH, HEIGHT, MARGIN, LEGEND = 460, 300, 56, 26


def panels_of(table):
    for section, (title, rows) in table.sections.items():
        for name in dict.fromkeys(name for name, _ in rows):
            sizes = sorted(size for n, size in rows if n == name and size > 0)
            if len(sizes) >= 3 and not name.startswith('overlap'):
                yield section, title, name, sizes


def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def size_text(size):
    for unit, text in ((1 << 20, 'M'), (1 << 10, 'K')):
        if size >= unit:
            return f'{size // unit}{text}'
    return str(size)


def panel(table, section, title, name, sizes, left, top):
    series = {}
    for label in table.labels(section):
        points = [(size, table.value(section, label, name, size)) for size in sizes]
        points = [(size, value) for size, value in points if value is not None and value > 0]
        if points:
            series[label] = points
    values = [value for points in series.values() for _, value in points]
    if not values:
        return []
    exponents = decades(min(values), max(values))
    low, high = exponents[0], max(exponents[-1], exponents[0] + 1)
    x0, x1, y0, y1 = left + MARGIN, left + WIDTH - 14, top + HEIGHT - MARGIN, top + 34

    def x(size):
        a, b = math.log2(sizes[0]), math.log2(sizes[-1])
        return x0 + (math.log2(size) - a) / (b - a) * (x1 - x0)

    def y(value):
        return y0 - (math.log10(value) - low) / (high - low) * (y0 - y1)

    out = [f'<text x="{left + WIDTH / 2:.0f}" y="{top + 18}" text-anchor="middle" font-weight="bold">'
           f'{escape(name)}, {escape(table.units[name])}: {escape(title)}</text>']
    for e in range(low, high + 1):
        out.append(f'<path d="M{x0} {y(10 ** e):.1f}H{x1}" stroke="#ddd"/>')
        out.append(f'<text x="{x0 - 6}" y="{y(10 ** e) + 4:.1f}" text-anchor="end">{10.0 ** e:g}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{y0 + 16}" text-anchor="middle">{size_text(size)}</text>')
    for k, (label, points) in enumerate(series.items()):
        colour = COLOURS.get(label, '#000000')
        path = ' '.join(f'{x(size):.1f},{y(value):.1f}' for size, value in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{2.5 if label == "motet" else 1.5}"/>')
        at = x0 + k * (x1 - x0) / max(1, len(series))
        out.append(f'<path d="M{at:.0f} {y0 + 34}h16" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{at + 20:.0f}" y="{y0 + 38}">{escape(label)}</text>')
    return out


def write_svg(table, path):
    """False if there is nothing to draw."""
    panels = list(panels_of(table))
    if not panels:
        return False
    columns = min(3, len(panels))
    n_rows = -(-len(panels) // columns)
    width, height = columns * WIDTH, n_rows * (HEIGHT + LEGEND)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="11">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for k, (section, title, name, sizes) in enumerate(panels):
        out += panel(table, section, title, name, sizes, k % columns * WIDTH, k // columns * (HEIGHT + LEGEND))
    out.append('</svg>')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join(out) + '\n')
    return True
