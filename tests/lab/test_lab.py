# SPDX-License-Identifier: BSD-3-Clause
"""motet-lab itself, with plain processes: wires, cuts, rates, several labs, and that nothing is ever left."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest

from harness import lab as harness_lab
from harness import stage

UDP_ECHO = textwrap.dedent('''
    import socket, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 9999))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(100)
        s.sendto(data, peer)
''')
UDP_ASK = textwrap.dedent('''
    import socket, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    try:
        s.connect((sys.argv[1], 9999))
        for attempt in range(3):
            s.send(b"x")
            try:
                s.recv(10)
                sys.exit(0)
            except socket.timeout:
                pass
    except OSError:
        pass
    sys.exit(1)
''')
THREE = 'three-networks'


def reaches(lab, node, address):
    return lab.on(node, 'python3', '-c', UDP_ASK, address, check=False).returncode == 0


@pytest.fixture
def wires(new_lab):
    return new_lab(THREE, daemons=False)


def test_networks_are_apart_and_a_cut_is_a_cut(wires):
    echo = wires.start('gw2', 'python3', '-c', UDP_ECHO)
    harness_lab.read_until(echo, 'ready', 10)
    try:
        assert reaches(wires, 'm1', '10.2.0.5')
        assert reaches(wires, 'c1', '10.3.0.5')
        assert not reaches(wires, 'a1', '10.2.0.5'), 'the kernel forwards between the networks of a lab'
        for words in ([], ['--silent']):
            wires.lab('cut', 'gw2', 'middle', *words)
            assert not reaches(wires, 'm1', '10.2.0.5')
            assert reaches(wires, 'c1', '10.3.0.5'), 'a cut took another network along'
            carrier = wires.on('gw2', 'cat', '/sys/class/net/middle/carrier', check=False).stdout.strip()
            assert carrier == ('1' if words else '0')
            assert 'x' in wires.status()['drawing'].split('middle', 1)[1].splitlines()[0]
            wires.lab('heal', 'gw2', 'middle')
            assert reaches(wires, 'm1', '10.2.0.5')
    finally:
        harness_lab.stop(echo)


def test_nodes_have_their_own_name_memory_and_runtime_directory(wires):
    assert wires.on('c2', 'hostname').stdout.strip() == 'c2'
    wires.on('c2', 'touch', '/dev/shm/x', '/run/motet/y')
    assert wires.on('c1', 'ls', '/dev/shm', '/run/motet').stdout.split() == ['/dev/shm:', '/run/motet:']
    assert not os.path.exists('/dev/shm/x')


def test_exit_codes_and_working_directory(wires, tmp_path):
    assert wires.on('a1', 'sh', '-c', 'exit 7', check=False).returncode == 7
    assert wires.on('a1', 'sh', '-c', 'kill -9 $$', check=False).returncode == 137
    assert wires.on('a1', 'no-such-program', check=False).returncode == 127
    assert wires.on('a1', 'pwd', cwd=tmp_path).stdout.strip() == str(tmp_path)
    refused = wires.lab('cut', 'a1', 'right', check=False)
    assert refused.returncode == 1 and 'a1 is on left, not on right' in refused.stderr
    assert 'there are a1 a2' in wires.lab('log', 'zz', check=False).stderr


def test_networks_called_like_words_of_ip(new_lab, tmp_path):
    """An interface has its network's name, and ip takes "a" for the beginning of "address"."""
    file = tmp_path / 'words.lab'
    file.write_text(''.join(f'[network {name}]\nnodes = n1 n2\n' for name in ('a', 'up', 'dev', 'name', 'mtu')))
    lab = new_lab(str(file), daemons=False)
    shown = lab.on('n2', 'ip', '-br', 'addr').stdout
    assert all(f'10.{index}.0.2/24' in shown for index in range(1, 6)), shown
    lab.lab('cut', 'n2', 'a')
    lab.lab('heal', 'n2', 'a')


def test_rate_is_kept(new_lab, tmp_path):
    file = tmp_path / 'slow.lab'
    file.write_text('[network slow]\nrate = 80mbit\nnodes = s1 s2\n')
    lab = new_lab(str(file), daemons=False)
    receive = lab.start('s2', 'python3', '-c', 'import socket,time\nl=socket.create_server(("",9998))\nprint("ready",flush=True)\n'
                        'c=l.accept()[0]\nt=time.time()\nn=0\nwhile True:\n d=c.recv(1<<20)\n n+=len(d)\n if not d: break\n'
                        'print(n/(time.time()-t)/1e6)')
    harness_lab.read_until(receive, 'ready', 10)
    lab.on('s1', 'python3', '-c', 'import socket\nc=socket.create_connection(("10.1.0.2",9998))\nc.sendall(bytes(10<<20))\nc.close()')
    code, output = harness_lab.finish(receive, 30)
    assert code == 0 and 6.0 < float(output) < 11.0, f'{output} MB/s over 80 Mbit/s'


def test_two_labs_at_once(new_lab):
    first, second = new_lab('gateway', daemons=False), new_lab('gateway', daemons=False)
    first.on('a1', 'touch', '/run/motet/only-here')
    assert second.on('a1', 'ls', '/run/motet').stdout == ''
    names = stage.run([first.installation.motet_lab, 'list']).stdout.split()
    assert first.name in names and second.name in names


def test_down_takes_everything(new_lab):
    lab = new_lab(THREE, daemons=False)
    remains = harness_lab.Remains(lab)
    background = lab.start('a1', 'sh', '-c', 'sleep 1000 & setsid sleep 1000 & wait')
    time.sleep(0.2)
    assert remains.processes()
    lab.down()
    remains.assert_gone()
    harness_lab.stop(background)


def test_kill_of_the_holder_takes_everything(new_lab):
    lab = new_lab(THREE, daemons=False)
    remains = harness_lab.Remains(lab)
    background = lab.start('m1', 'sh', '-c', 'setsid sleep 1000 & sleep 1000')
    time.sleep(0.2)
    os.kill(harness_lab.holder_of(lab), signal.SIGKILL)
    remains.assert_gone()
    harness_lab.stop(background)
    harness_lab.Lab.up_now.remove(lab)


def test_the_end_of_the_watched_process_takes_everything(installation, namespaces):
    watched = subprocess.Popen(['sleep', '1000'])
    name = f'watch-{os.getpid()}'
    stage.run([installation.motet_lab, 'up', 'gateway', '--no-daemons', '--name', name, '--watch', watched.pid])
    assert name in stage.run([installation.motet_lab, 'list']).stdout.split()
    watched.kill()
    watched.wait()
    deadline = time.monotonic() + 5
    while name in stage.run([installation.motet_lab, 'list']).stdout.split():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(os.geteuid() != 0, reason='this run is the one of an ordinary user')
def test_as_an_ordinary_user(installation, namespaces, programs):
    """A lab and a job in it without any privilege, if the kernel lets users have namespaces and the installation can be read."""
    as_user = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'env', 'HOME=/tmp', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
               '/usr/bin/python3', installation.motet_lab]
    check = stage.run(as_user + ['check'], check=False, cwd='/')
    if check.returncode != 0:
        pytest.skip(f'as an ordinary user: {check.stderr.strip()}')
    assert 'user namespace' in check.stdout
    name = f'user-{os.getpid()}'
    stage.run(as_user + ['up', 'gateway', '--name', name, '--watch', os.getpid()], cwd='/')
    try:
        shown = stage.run(as_user + ['--name', name, 'exec', 'gw', '--', 'ip', '-br', 'addr'], cwd='/').stdout
        assert '10.1.0.3/24' in shown and '10.2.0.3/24' in shown
        with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
            os.chmod(folder, 0o755)
            program = shutil.copy(programs('ring'), folder)
            job = as_user + ['--name', name, 'exec', 'a1', '--', 'mpiexec', '-n', '4', '-hosts', 'a1,b1,a2,b2', program, '1']
            assert '0 words wrong: ok' in stage.run(job, cwd='/').stdout
    finally:
        stage.run(as_user + ['down', '--name', name], cwd='/')
    assert name not in stage.run(as_user + ['list'], cwd='/').stdout.split()


# ---- what a lab file may say ----

def load_modules(installation):
    folder = os.path.join(installation.prefix, 'share', 'motet')
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from motet_lab import cluster, drawing, node  # pylint: disable=import-outside-toplevel,import-error
    return cluster, node, drawing


@pytest.mark.parametrize('text, complaint', [
    ('nodes = a', ':1: a value before the first [section]'),
    ('[network x]\nnodes a', ':2: expected "key = value"'),
    ('[network x\n', ':1: a section ends in "]"'),
    ('[netz x]\n', ':1: unknown section [netz x]'),
    ('[network x]\nnodes = a b\nspeed = 3\n', ':3: unknown key "speed"'),
    ('[network x]\nnodes = a a\n', ':2: node a is on network x already'),
    ('[network x]\nrate = fast\n', ':2: rate = fast: expected a number with unit'),
    ('[network x]\nmtu = 12\n', ':2: mtu = 12: expected 576 to 65521'),
    ('[network x]\nnodes = a\n[network x]\n', ':3: network x stands here twice'),
    ('[network a_name_too_long]\n', ':1: expected [network NAME]'),
    ('[network x]\nnodes = a\n[node b]\nmesh.heartbeat = 1s\n', ':4: node b is on no network'),
    ('# nothing\n', ': no [network NAME] in it'),
    ('[network x]\nrate = 1gbit\n', ': a network without nodes'),
])
def test_a_wrong_lab_file_is_refused_with_its_line(installation, tmp_path, text, complaint):
    cluster, _, _ = load_modules(installation)
    file = tmp_path / 'wrong.lab'
    file.write_text(text)
    with pytest.raises(cluster.LabFileError) as caught:
        cluster.read(str(file))
    assert f'{file}{complaint}' in str(caught.value)


def test_a_lab_file_becomes_configurations(installation, tmp_path):
    cluster, node, drawing = load_modules(installation)
    file = tmp_path / 'two.lab'
    file.write_text('[network left]\nrate = 1gbit\nnodes = a, gw\n[network right]\nprovider = udp\nnodes = gw b\n'
                    '[motetd]\nmesh.heartbeat = 100ms\n[node gw]\ntransport.blocks_per_channel = 256\n')
    plan = cluster.read(str(file))
    assert plan.reachable() == {'a': {'gw', 'b'}, 'gw': {'a', 'b'}, 'b': {'a', 'gw'}}
    text = node.motetd_conf(plan, plan.node('gw'))
    for line in ('name = gw', '[channel left]', 'seeds = 10.1.0.1', 'mbytes_per_s = 125', '[channel right]', 'provider = udp',
                 'seeds = 10.2.0.3', '[mesh]\nheartbeat = 100ms', 'blocks_per_channel = 256'):
        assert line in text, text
    assert 'blocks_per_channel' not in node.motetd_conf(plan, plan.node('a'))
    drawn = drawing.draw(plan, cuts={('gw', 'right')}, dead=['b'])
    assert '(b)' in drawn and 'x' in drawn.splitlines()[-1] and 'o' in drawn.splitlines()[-1]
