# SPDX-License-Identifier: BSD-3-Clause
"""Paths that fail in silence: packets of the channels are lost while the control connections beside them live. Traffic takes another
network within a second, where there is one; where there is none it goes on within a second after the repair; either way the doctor
names the link and the cause."""
import re
import shutil
import time

import pytest

from harness import lab as harness_lab
from harness import traffic

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
    return traffic.build(installation, tmp_path_factory.mktemp('pauses'))


@pytest.fixture(scope='module')
def lab(shared_lab, tmp_path_factory):
    if not shutil.which('nft'):
        pytest.skip('nft (nftables) is not installed')
    file = tmp_path_factory.mktemp('lab') / 'silence.lab'
    file.write_text(LAB)
    one = shared_lab(file)
    one.wait_routes()
    return one


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


@pytest.mark.alone  # how long it pauses
@pytest.mark.parametrize('fault', FAULTS)
def test_traffic_takes_the_other_network(lab, pauses, fault):
    network, rule = FAULTS[fault]
    all_alive(lab)
    job = lab.start_mpi(['n1', 'n2'], pauses, 2.5, 60000)
    harness_lab.read_until(job, 'pauses: run', 20)
    time.sleep(0.5)
    traffic.block(lab, 'n2', network, rule)
    try:
        doctor_says(lab, 'n1', rf'(data|packets|send).*on network {network}')
        n_messages, longest_ms = traffic.finish(job, 60)
    finally:
        traffic.mend(lab, 'n2')
    print(f'{fault}: {n_messages} messages, longest pause {longest_ms} ms')
    assert longest_ms < LONGEST_MS * SLACK
