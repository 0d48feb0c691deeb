# SPDX-License-Identifier: BSD-3-Clause
"""What faults cost: checked traffic between two ranks while something fails at a random moment, and comes back. Nothing may be lost,
doubled, reordered or corrupted; what is measured is the longest pause."""
import json
import os
import random
import re
import subprocess
import threading
import time

from . import shell
from .lab import Lab
from .systems import ROOT, say

SOURCE = os.path.join(ROOT, 'tests', 'cluster', 'pauses.c')
CONTROL_PORT = 7117
SECONDS = 5
# What a try may take: a fault that stays for good ends the job after unreachable_after.
LIMIT_S = 60

RAILS = {'wire': ['n1', 'n2'], 'dgram': ['n1', 'n2']}
GATES = {'left': ['n1', 'g1', 'g2'], 'right': ['g1', 'g2', 'n2']}
PROVIDERS = {'dgram': 'udp'}


def firewall(nodes, network, rule):
    """Rules for what comes into these nodes; the control connections are let through."""
    rules = [f'tcp sport {CONTROL_PORT} accept', f'tcp dport {CONTROL_PORT} accept', rule]
    words = ['nft add table inet faults', 'nft add chain inet faults in "{type filter hook input priority 0;}"']
    words += [f'nft add rule inet faults in iifname {network} {one}' for one in rules]

    def begin(lab):
        for node in nodes:
            lab.run(node, ['sh', '-c', ' && '.join(words)])

    def end(lab):
        for node in nodes:
            lab.run(node, ['nft', 'delete', 'table', 'inet', 'faults'])

    return begin, end


def order(begin, end):
    """Orders to motet-lab itself."""
    return lambda lab: lab.order(*begin), lambda lab: lab.order(*end)


def signal_daemon(node, number):
    def send(lab):
        nodes = json.loads(lab.order('status', '--json')[0])['nodes']
        daemon = next(one['daemon'] for one in nodes if one['name'] == node)
        lab.run(node, ['kill', f'-{number}', daemon])

    return send


def start_again(node):
    """Once it has ended."""
    def start(lab):
        deadline = time.monotonic() + 20
        while json.loads(lab.order('status', '--json')[0])['nodes'][lab.nodes.index(node)]['daemon']:
            if time.monotonic() > deadline:
                raise shell.Failed(f'the daemon of {node} does not end')
            time.sleep(0.1)
        lab.order('start', node)

    return start


# name: (networks, (what begins it, what ends it)); the same rows stand in doc/testing.md
FAULTS = {
    'cable out': (RAILS, order(['cut', 'n2', 'wire'], ['heal', 'n2', 'wire'])),
    'cable out, silent': (RAILS, order(['cut', 'n2', 'wire', '--silent'], ['heal', 'n2', 'wire'])),
    'cable out, silent, udp': (RAILS, order(['cut', 'n2', 'dgram', '--silent'], ['heal', 'n2', 'dgram'])),
    'data port dropped': (RAILS, firewall(['n1', 'n2'], 'wire', 'meta l4proto tcp drop')),
    'data port dropped, one way': (RAILS, firewall(['n2'], 'wire', 'meta l4proto tcp drop')),
    'data port rejected': (RAILS, firewall(['n1', 'n2'], 'wire', 'meta l4proto tcp reject with tcp reset')),
    'large packets lost': (RAILS, firewall(['n1', 'n2'], 'wire', 'meta l4proto tcp meta length gt 1200 drop')),
    'udp port filtered': (RAILS, firewall(['n1', 'n2'], 'dgram', 'meta l4proto udp drop')),
    'udp port filtered, one way': (RAILS, firewall(['n2'], 'dgram', 'meta l4proto udp drop')),
    'udp large packets lost': (RAILS, firewall(['n1', 'n2'], 'dgram', 'meta l4proto udp meta length gt 1200 drop')),
    'only path dropped': ({'wire': ['n1', 'n2']}, firewall(['n1', 'n2'], 'wire', 'meta l4proto tcp drop')),
    'gateway killed': (GATES, order(['kill', 'g1'], ['start', 'g1'])),
    'gateway hangs': (GATES, (signal_daemon('g1', 'STOP'), signal_daemon('g1', 'CONT'))),
    'gateway told to end': (GATES, (signal_daemon('g1', 'TERM'), start_again('g1'))),
}


class Job:
    """A run of `pauses` whose output is read as it comes."""

    def __init__(self, words):
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors='replace', start_new_session=True)
        self.text = ''
        self.running = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.text += line
            if 'pauses: run' in line:
                self.running.set()
        self.running.set()

    def finish(self):
        """(messages, lost, doubled, reordered, corrupted, longest pause in ms); Failed if there are none."""
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            shell.kill_group(self.process)
        self.reader.join(5)
        found = re.search(r'messages (\d+) lost (\d+) doubled (\d+) reordered (\d+) corrupted (\d+) longest (\d+) ms', self.text)
        if not found:
            raise shell.Failed(f'no end within {LIMIT_S} s, or no result:\n{self.text[-2000:]}')
        return [int(word) for word in found.groups()]


def one_try(lab, program, fault, draw):
    begin, end = fault
    job = Job(lab.words('n1', ['mpiexec', '-n', 2, '-ppn', 1, '-hosts', 'n1,n2', program, SECONDS]))
    try:
        if not job.running.wait(30) or job.process.poll() is not None:
            raise shell.Failed(f'the job does not run:\n{job.text[-2000:]}')
        time.sleep(draw.uniform(0.1, 1.5))
        begin(lab)
        time.sleep(draw.uniform(0.8, 2.5))
        end(lab)
        return job.finish()
    finally:
        shell.kill_group(job.process)


def faults(bench):
    """Faults at random moments: what is lost, and the longest pause"""
    bench.table.begin('faults', 'Faults at random moments: two nodes, checked messages of up to 100 KB both ways')
    program = os.path.join(bench.folder, 'pauses')
    shell.run([bench.motet.path('mpicc'), '-O1', '-o', program, SOURCE])
    say(f'seed {bench.seed} (again: --seed {bench.seed})')
    print(f'{"fault":28} {"tries":>5} {"messages":>9} {"lost":>5} {"doubled":>7} {"reordered":>9} {"corrupted":>9} {"longest pause":>13}')
    draw = random.Random(bench.seed)
    for name, (networks, fault) in FAULTS.items():
        sums, longest, tries = [0] * 5, 0, 0
        for _ in range(bench.repeats):
            lab = Lab(bench.motet, bench.folder, networks=networks, providers=PROVIDERS)
            try:
                lab.order('wait')
                *counts, pause_ms = one_try(lab, program, fault, draw)
                tries += 1
                sums = [a + b for a, b in zip(sums, counts)]
                longest = max(longest, pause_ms)
                bench.table.add('motet', name, 0, float(pause_ms), 'ms')
            except shell.Failed as error:
                bench.table.fail('motet', name, str(error))
            finally:
                lab.down()
        messages, lost, doubled, reordered, corrupted = sums
        print(f'{name:28} {tries:5} {messages:9} {lost:5} {doubled:7} {reordered:9} {corrupted:9} {longest:10} ms', flush=True)
        if lost + doubled + reordered + corrupted > 0:
            bench.table.fail('motet', name, f'{lost} lost, {doubled} doubled, {reordered} reordered, {corrupted} corrupted')
