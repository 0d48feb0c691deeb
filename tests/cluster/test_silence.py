# SPDX-License-Identifier: BSD-3-Clause
"""Paths that fail in silence: packets of the channels are lost while the control connections beside them live. Traffic takes another
network within a second, where there is one; where there is none it goes on within a second after the repair; either way the doctor
names the link and the cause."""
import os
import re
import shutil
import time

import pytest

from harness import lab as harness_lab
from harness import stage

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST_MS = 1000
# A machine that is busy with other things.
SLACK = 1.5

LAB = """[network wire]
provider = tcp
nodes = n1 n2

[network dgram]
provider = udp
nodes = n1 n2
"""

CONTROL_PORT = 7117
# For what comes into a node, after everything of the control port was let through.
FAULTS = {
    'tcp data port dropped': ('wire', 'meta l4proto tcp drop'),
    'tcp data port rejected': ('wire', 'meta l4proto tcp reject with tcp reset'),
    'tcp large packets lost': ('wire', 'meta l4proto tcp meta length gt 1200 drop'),
    'udp port filtered': ('dgram', 'meta l4proto udp drop'),
    'udp large packets lost': ('dgram', 'meta l4proto udp meta length gt 1200 drop'),
}


@pytest.fixture(scope='module')
def pauses(installation, tmp_path_factory):
    program = str(tmp_path_factory.mktemp('pauses') / 'pauses')
    stage.run([installation.mpicc, '-O1', '-Wall', '-Wextra', '-Werror', '-o', program, os.path.join(HERE, 'pauses.c')], 60)
    return program


@pytest.fixture(scope='module')
def lab(shared_lab, tmp_path_factory):
    if not shutil.which('nft'):
        pytest.skip('nft (nftables) is not installed')
    file = tmp_path_factory.mktemp('lab') / 'silence.lab'
    file.write_text(LAB)
    one = shared_lab(file)
    one.wait_routes()
    return one


def block(lab, node, network, rule):
    rules = [f'tcp sport {CONTROL_PORT} accept', f'tcp dport {CONTROL_PORT} accept', rule]
    lab.on(node, 'sh', '-c', ' && '.join(
        ['nft add table inet silence', 'nft add chain inet silence in "{type filter hook input priority 0;}"'] +
        [f'nft add rule inet silence in iifname {network} {one}' for one in rules]))


def mend(lab, node):
    lab.on(node, 'nft', 'delete', 'table', 'inet', 'silence')


def finish(job, seconds):
    """The counts of a run of `pauses`, none of which but the messages may be more than 0, and the longest pause."""
    code, output = harness_lab.finish(job, seconds)
    found = re.search(r'messages (\d+) lost 0 doubled 0 reordered 0 corrupted 0 longest (\d+) ms', output)
    assert code == 0 and found, output
    return int(found[1]), int(found[2])


def doctor_says(lab, node, pattern, within_s=6.0):
    deadline = time.monotonic() + within_s
    while True:
        rows = [row for row in lab.motetctl_any(node, 'doctor') if row['check'] == 'links']
        texts = [f'{row["state"]} {row["node"]}: {row["text"]} | {row.get("advice")}' for row in rows]
        if any(re.search(pattern, text) for text in texts):
            return
        assert time.monotonic() < deadline, texts
        time.sleep(0.1)


def all_alive(lab, within_s=5.0):
    """No link has a fault."""
    deadline = time.monotonic() + within_s
    while True:
        rows = lab.motetctl('n1', 'links')
        if len(rows) == 4 and not any(row.get('fault') for row in rows):
            return
        assert time.monotonic() < deadline, rows
        time.sleep(0.05)


@pytest.mark.parametrize('fault', FAULTS)
def test_traffic_takes_the_other_network(lab, pauses, fault):
    network, rule = FAULTS[fault]
    all_alive(lab)
    job = lab.start_mpi(['n1', 'n2'], pauses, 2.5, 60000)
    harness_lab.read_until(job, 'pauses: run', 20)
    time.sleep(0.5)
    block(lab, 'n2', network, rule)
    try:
        doctor_says(lab, 'n1', rf'(data|packets|send).*on network {network}')
        n_messages, longest_ms = finish(job, 60)
    finally:
        mend(lab, 'n2')
    print(f'{fault}: {n_messages} messages, longest pause {longest_ms} ms')
    assert longest_ms < LONGEST_MS * SLACK
