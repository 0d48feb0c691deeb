# SPDX-License-Identifier: BSD-3-Clause
"""Another user of a node sends what he likes to its daemons: checked messages of jobs go on, no daemon dies, and the doctor says that
somebody tries."""
import os
import sys
import time

import pytest

from harness import lab as harness_lab
from harness import stage

PROGRAM = os.path.join(stage.ROOT, 'tests', 'hostile', 'strangers.py')
LAB = '[network lan]\nprovider = tcp\nnodes = n1 n2\n[network dg]\nprovider = udp\nnodes = n2 n3\n'


@pytest.fixture(scope='module')
def lab(installation, namespaces, tmp_path_factory):
    folder = tmp_path_factory.mktemp('strangers')
    (folder / 'strangers.lab').write_text(LAB)
    made = harness_lab.Lab(installation, str(folder / 'strangers.lab'), folder / 'logs')
    yield made
    made.down()


def ports(lab, node, option, address):
    lines = lab.on(node, 'ss', option).stdout.splitlines()
    return sorted({word.rsplit(':', 1)[1] for line in lines for word in line.split()[3:4] if word.startswith(address + ':')})


def n_refused(lab):
    """What the channels of n2 have refused so far."""
    return sum(row['counters'].get(name, 0) for row in lab.motetctl('n2', 'counters') if row['node'] == 'n2'
               for name in ('forged_packets', 'replayed_packets', 'strangers'))


@pytest.mark.parametrize('attack,option,address', [('rubbish', '-ltnH', '10.1.0.2'), ('impostor', '-ltnH', '10.1.0.2'),
                                                   ('idle', '-ltnH', '10.1.0.2'), ('datagrams', '-lunH', '10.2.0.2')])
def test_nobody_notices(lab, programs, attack, option, address):
    targets = ports(lab, 'n2', option, address)
    assert targets, attack
    before = sorted((node, pid) for node, pid, command in lab.processes() if 'motetd' in command.split(' ')[0])
    refused = n_refused(lab)
    villain = lab.start('n2', sys.executable, PROGRAM, attack, address, *targets)
    try:
        done = lab.mpi(['n1', 'n2', 'n3'], programs('pingpong'), timeout_s=60)
        assert 'ok' in done.stdout
    finally:
        rc, output = harness_lab.finish(villain, 40)
    assert rc == 0, output
    assert sorted((node, pid) for node, pid, command in lab.processes() if 'motetd' in command.split(' ')[0]) == before
    deadline = time.monotonic() + 20
    while attack != 'rubbish' and n_refused(lab) == refused:
        assert time.monotonic() < deadline, 'nothing was counted'
        time.sleep(0.2)
    while not any(row['node'] == 'n2' and row['check'] == 'intruders' and row['state'] == 'warn'
                  for row in lab.motetctl_any('n2', 'doctor')):
        assert time.monotonic() < deadline, 'the doctor says nothing'
        time.sleep(0.2)
    lab.mpi(['n1', 'n2', 'n3'], programs('pingpong'), timeout_s=60)
