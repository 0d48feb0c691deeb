# SPDX-License-Identifier: BSD-3-Clause
"""A network of datagrams that loses some of them, at random: messages of all sizes arrive once, whole and in order, without long pauses,
since a lost fragment alone is sent again; and what an administrator sees of it."""
import shutil
import time

import pytest

from harness import lab as harness_lab
from harness import traffic

LAB = """[network dgram]
provider = udp
nodes = n1 n2
"""
LARGEST = 1 << 20
# Of an exchange of 16 messages of up to 1 MiB.
LONGEST_MS = 500
SLACK = 3
# MTU of the wires, less the heads of IP and UDP.
WHOLE, NARROW = 1472, 1280 - 28


@pytest.fixture(scope='module')
def lab(shared_lab, tmp_path_factory):
    if not shutil.which('nft'):
        pytest.skip('nft (nftables) is not installed')
    file = tmp_path_factory.mktemp('lab') / 'datagrams.lab'
    file.write_text(LAB)
    one = shared_lab(file)
    one.wait_routes()
    return one


@pytest.fixture(scope='module')
def pauses(installation, tmp_path_factory):
    return traffic.build(installation, tmp_path_factory.mktemp('pauses'))


def counters(lab, name):
    return sum(row['counters'].get(name, 0) for row in lab.motetctl('n1', 'counters') if row['node'] == 'n1')


def wait_network(lab, expected, within_s=10.0):
    """Until the network's row says so."""
    deadline = time.monotonic() + within_s
    while True:
        row, = lab.motetctl('n1', 'networks')
        if all(row.get(key) == value for key, value in expected.items()):
            return
        assert time.monotonic() < deadline, row
        time.sleep(0.1)


def expect_narrow(lab, within_s=10.0):
    """The network's row and the doctor tell the size of the path, once it is found: while it is searched, it has none."""
    deadline = time.monotonic() + within_s
    while True:
        row, = lab.motetctl('n1', 'networks')
        texts = [row['text'] for row in lab.motetctl_any('n1', 'doctor') if row['check'] == 'links' and row['state'] == 'warn']
        if NARROW - 64 < row.get('datagram_bytes', 0) <= NARROW and any(
                f'do not arrive at node n2 on network dgram, the interface allows {WHOLE}' in text for text in texts):
            return
        assert time.monotonic() < deadline, (row, texts)
        time.sleep(0.1)


def run_with(lab, pauses, rule, look=lambda lab: None):
    """Checked messages for a second while this rule drops what comes into both nodes, then a look at it. Returns their longest pause in ms."""
    job = lab.start_mpi(['n1', 'n2'], pauses, 1.0, LARGEST)
    harness_lab.read_until(job, 'pauses: run', 20)
    for node in lab.nodes:
        traffic.block(lab, node, 'dgram', rule)
    try:
        n_messages, longest_ms = traffic.finish(job, 60)
        look(lab)
    finally:
        for node in lab.nodes:
            traffic.mend(lab, node)
    print(f'{rule}: {n_messages} messages, longest pause {longest_ms} ms')
    return longest_ms


@pytest.mark.parametrize('percent', [1, 10])
def test_lost_fragments_are_sent_again(lab, pauses, percent):
    before = counters(lab, 'fragments_resent')
    longest_ms = run_with(lab, pauses, f'meta l4proto udp numgen random mod 100 lt {percent} drop')
    assert longest_ms < LONGEST_MS * SLACK
    deadline = time.monotonic() + 5
    while counters(lab, 'fragments_resent') < before + 10:
        assert time.monotonic() < deadline, 'nothing was counted'
        time.sleep(0.1)


def test_a_narrow_path_is_found_and_named(lab, pauses):
    wait_network(lab, {'provider': 'udp', 'datagram_bytes': WHOLE})
    assert 'gso' in lab.motetctl('n1', 'networks')[0]['features'].split()
    for node in lab.nodes:
        # The rule below shall see each datagram as a switch does, not what the kernel will cut or has joined.
        lab.on(node, 'ip', 'link', 'set', 'dgram', 'gso_max_segs', 1)
    assert run_with(lab, pauses, f'meta l4proto udp meta length gt {NARROW + 28} drop', expect_narrow) < 1000 * SLACK
