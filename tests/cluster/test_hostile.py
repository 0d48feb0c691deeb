# SPDX-License-Identifier: BSD-3-Clause
"""A rank that fills its rings, its segment and its socket with rubbish hurts its own job and nobody else: while it does its worst, another
job passes checked messages through the same daemons, which live on and keep nothing of it."""
import os
import time

import pytest

from harness import lab as harness_lab
from harness import stage

FOLDER = os.path.join(stage.ROOT, 'tests', 'hostile')
MODES = ['slots', 'bits', 'heads', 'flood', 'memory', 'board', 'frames', 'liar']
SECONDS = float(os.environ.get('MOTET_HOSTILE_S', '2'))


@pytest.fixture(scope='module')
def hostile_rank(tmp_path_factory):
    path = tmp_path_factory.mktemp('hostile') / 'hostile_rank'
    sources = [os.path.join(stage.ROOT, folder, name) for folder in ('proto', 'base')
               for name in sorted(os.listdir(os.path.join(stage.ROOT, folder))) if name.endswith('.c')]
    stage.run(['cc', '-std=gnu17', '-D_GNU_SOURCE', '-O2', '-fno-strict-aliasing', '-I', stage.ROOT, '-o', path,
               os.path.join(FOLDER, 'hostile_rank.c'), *sources, '-lpthread'], timeout_s=120)
    return str(path)


@pytest.fixture(scope='module')
def lab(installation, namespaces, tmp_path_factory):
    """With MOTET_HOSTILE_MOTETD the nodes run that daemon: one built with sanitizers sees more."""
    motetd = os.environ.get('MOTET_HOSTILE_MOTETD')
    made = harness_lab.Lab(installation, 'one-network', tmp_path_factory.mktemp('logs'), *(['--motetd', motetd] if motetd else []))
    yield made
    made.down()


def daemons(lab):
    return sorted((node, pid) for node, pid, command in lab.processes() if 'motetd' in command.split(' ')[0])


@pytest.mark.parametrize('mode', MODES)
def test_others_go_on(lab, programs, hostile_rank, mode):
    before = daemons(lab)
    assert len(before) == len(lab.nodes)
    seed = time.time_ns() & 0xffffff
    print(f'seed {seed}')
    villain = lab.start_mpi(['n1', 'n2'], hostile_rank, mode, SECONDS, seed)
    try:
        harness_lab.read_until(villain, 'attached', 20)
        begin, n_runs = time.monotonic(), 0
        while n_runs == 0 or (time.monotonic() - begin < SECONDS and villain.poll() is None):
            done = lab.mpi(['n1', 'n2'], programs('pingpong'), timeout_s=60)
            assert '4194304' in done.stdout, done.stdout + done.stderr
            n_runs += 1
            # The views are answered too, whatever lies in the segment.
            assert lab.motetctl('n1', 'queues') is not None and lab.motetctl('n1', 'ranks') is not None
    finally:
        harness_lab.finish(villain, SECONDS + 30)
    assert daemons(lab) == before, 'a daemon died'
    for name in os.listdir(lab.log_dir):
        with open(os.path.join(lab.log_dir, name), encoding='utf-8', errors='replace') as file:
            text = file.read()
        assert 'runtime error' not in text and 'Sanitizer' not in text, text[-4000:]
    lab.mpi(['n1', 'n2'], programs('pingpong'), timeout_s=60)
    lab.assert_clean()
