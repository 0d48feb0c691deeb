# SPDX-License-Identifier: BSD-3-Clause
"""How bench/run compares what it measured."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'bench'))
from motet_bench import cli, report, shell, systems


def table_of(rows, unit='us', name='latency'):
    """rows: {label: [(value, line)]} of one row of 8 bytes."""
    table = report.Table()
    table.begin('node', 'Two ranks')
    for label, values in rows.items():
        for value, line in values:
            table.add(label, name, 8, value, unit, line)
    return table


def test_a_result_line_tells_the_raw_hand_over_beside_it():
    text = 'noise\nRESULT latency 8 0.25 us 46.5\nRESULT wait 8 1.5 % 0\nRESULT tcp 8 3 us\n'
    assert shell.results_with_line(text) == {('latency', 8): (0.25, 'us', 46.5), ('wait', 8): (1.5, '%', None), ('tcp', 8): (3.0, 'us', None)}
    assert shell.results(text) == {('latency', 8): (0.25, 'us'), ('wait', 8): (1.5, '%'), ('tcp', 8): (3.0, 'us')}


def test_the_ratio_is_that_of_turns_which_followed_one_another():
    # The machine is three times slower in the last two turns; ours is 1.2 times better in each.
    table = table_of({'motet': [(1, 50), (3, 150), (3, 150)], 'impi': [(1.2, 50), (1.2, 50), (3.6, 150)], 'mpich': [(9, 50)] * 3})
    assert table.ratio('node', ('latency', 8)) == pytest.approx(1.2)


def test_more_is_better_for_rates():
    for unit in ('GB/s', 'MB/s', 'M/s', 'Mbit/s'):
        assert table_of({'motet': [(4, None)], 'ompi': [(2, None)]}, unit).ratio('node', ('latency', 8)) == 2
    assert table_of({'motet': [(40, None)], 'ompi': [(20, None)]}, '%', 'overlap_one').ratio('node', ('overlap_one', 8)) == 2
    assert table_of({'motet': [(4, None)], 'ompi': [(2, None)]}).ratio('node', ('latency', 8)) == 0.5


def test_a_turn_that_failed_leaves_the_medians():
    table = table_of({'motet': [(1, None), (2, None), (3, None)], 'ompi': [(4, None), (4, None)]})
    assert table.ratio('node', ('latency', 8)) == 2


def test_no_ratio_without_a_peer():
    assert table_of({'motet': [(1, None)], 'ring': [(2, None)]}).ratio('node', ('latency', 8)) is None


def test_rows_show_the_line_and_when_it_differed():
    assert report.line_text(table_of({'motet': [(1, 50)], 'ompi': [(1, 55)]}).line('node', ('latency', 8))) == '50'
    assert report.line_text(table_of({'motet': [(1, 50)], 'ompi': [(1, 150)]}).line('node', ('latency', 8))) == '50..150'
    assert report.line_text(table_of({'motet': [(1, None)]}).line('node', ('latency', 8))) == ''


def test_a_peer_that_is_not_to_be_had_keeps_its_column(monkeypatch):
    def missing(name, option):
        raise shell.Failed('exit code 1: pip install\nno such package')

    bench = cli.Bench()
    bench.systems, bench.table = [], table_of({'motet': [(1, None)]})
    monkeypatch.setattr(systems, 'find_peer', missing)
    cli.add_peer(bench, 'impi', None)
    assert not bench.systems
    assert bench.table.labels('node') == ['motet', 'impi']
    text = report.text_of(bench.table)
    assert 'Intel MPI: exit code 1: pip install' in text
    assert next(line for line in text.splitlines() if line.startswith('latency')).split()[3:5] == ['1', '-']
