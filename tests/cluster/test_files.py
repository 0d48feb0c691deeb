# SPDX-License-Identifier: BSD-3-Clause
"""A file opened by ranks on nodes that share no file system: all of them hear why, and nobody writes into a file of its own."""
import os

from harness import stage

HOSTS = ['n1', 'n2']
# The rank of the second node has another file system in this place, as if its node had.
APART = 'cd {folder}; if [ "$MOTET_RANK" = 1 ]; then exec unshare -m sh -c "mount -t tmpfs none {folder} && {before} exec {program} {file}"; ' \
        'fi; exec {program} {file}'


def said(lab, program, folder, before):
    file = os.path.join(folder, 'data')
    script = APART.format(folder=folder, program=program, file=file, before=before)
    lines = lab.mpi(HOSTS, 'sh', '-c', script).stdout.splitlines()
    return {int(line.split()[1].rstrip(':')): line for line in lines if line.startswith('rank ')}, file


def test_nodes_that_share_no_file_system(shared_lab, installation, tmp_path):
    program = str(tmp_path / 'files')
    stage.run([installation.mpicc, '-o', program, os.path.join(stage.ROOT, 'tests', 'cluster', 'files.c')], 60)
    folder = str(tmp_path / 'place')
    os.mkdir(folder)
    lab = shared_lab('one-network')
    # What the first node creates is not there on the second, and goes again.
    lines, file = said(lab, program, folder, '')
    assert sorted(lines) == [0, 1]
    for line in lines.values():
        assert 'on node n2' in line and 'share no file system' in line, line
    assert not os.path.exists(file)
    # Both have a file of this name.
    with open(file, 'w', encoding='ascii') as out:
        out.write('mine')
    lines, _ = said(lab, program, folder, f'echo yours >{file};')
    for line in lines.values():
        assert 'is not the file that rank 0 opened on node n1' in line, line
    with open(file, encoding='ascii') as out:
        assert out.read() == 'mine'
    lab.assert_clean()
