# SPDX-License-Identifier: BSD-3-Clause
"""The networks of a lab: one namespace is the wiring closet, with a bridge per network and a port per connected node.

The node's end of each veth pair carries the network's name. A cut takes the port in the closet down, so that the node sees its
carrier go, as with a pulled cable; a silent cut leaves the carrier and drops everything, as with a switch that died further away.
Rates are token buckets at both ends of the pair, since each shapes one direction.
"""
import os
import subprocess
import time

from . import kernel

BURST_BYTES = 256 * 1024    # a few GSO packets of 64 KiB: with less a fast link never reaches its rate
QUEUE_LATENCY = '50ms'      # a bucket's queue, as deep as a cheap switch's
CARRIER_S = 10              # for a port that is taken up to have its carrier: milliseconds, on a busy machine more


class WiringError(Exception):
    """A network tool refused; the text is what it said."""


def run_in(process, argv, text=None):
    """Runs a command in the network namespace of `process` (a pidfd), with the rest of the caller's world."""
    done = subprocess.run(argv, input=text, text=True, capture_output=True, check=False, timeout=60,
                          preexec_fn=lambda: kernel.setns(process, kernel.CLONE_NEWNET))
    if done.returncode != 0:
        raise WiringError(f'{" ".join(argv)}: {(done.stderr or done.stdout).strip()}')
    return done.stdout


def ip_batch(process, lines):
    if lines:
        run_in(process, ['ip', '-batch', '-'], '\n'.join(lines) + '\n')


def port_name(network, node):
    """Name of the closet's end: numbers only, since two names of 12 letters do not fit in an interface's 15."""
    return f'port{network.number}.{node.number}'


def bridge_name(network):
    return f'net{network.number}'


def write_sysctl(name, value):
    """Sets a value in the caller's network namespace. Returns None or why not."""
    try:
        with open(os.path.join('/proc/sys', name), 'w', encoding='ascii') as file:
            file.write(value)
    except OSError as error:
        return error.strerror
    return None


def shape(process, device, network):
    """Rate, delay and loss of one direction."""
    commands = []
    if network.delay or network.loss:
        netem = ['netem', 'limit', '10000']
        netem += ['delay', network.delay] if network.delay else []
        netem += ['loss', network.loss] if network.loss else []
        commands.append(['tc', 'qdisc', 'add', 'dev', device, 'root', 'handle', '1:'] + netem)
    if network.rate:
        place = ['parent', '1:', 'handle', '2:'] if commands else ['root']
        commands.append(['tc', 'qdisc', 'add', 'dev', device] + place +
                        ['tbf', 'rate', network.rate, 'burst', str(BURST_BYTES), 'latency', QUEUE_LATENCY])
    for command in commands:
        run_in(process, command)


def build_closet(closet, cluster):
    ip_batch(closet, ['link set dev lo up'])
    for network in cluster.networks:
        bridge = bridge_name(network)
        ip_batch(closet, [f'link add name {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0',
                          f'link set dev {bridge} mtu {network.mtu}', f'link set dev {bridge} up'])


def connect(closet, node, node_process, node_pid):
    """Wires one node to all its networks. `node_pid` as the caller's /proc knows it."""
    ip_batch(node_process, ['link set dev lo up'])
    for network in node.networks:
        port = port_name(network, node)
        ip_batch(closet, [
            f'link add name {port} mtu {network.mtu} type veth peer name {network.name} mtu {network.mtu} netns {node_pid}',
            f'link set dev {port} master {bridge_name(network)}', f'link set dev {port} up'])
        ip_batch(node_process, [f'addr add {network.address(node)}/24 dev {network.name}',
                                f'link set dev {network.name} up'])
        shape(closet, port, network)
        shape(node_process, network.name, network)


def cut(closet, network, node, silent):
    if silent:  # state 0 is "disabled": the port takes and gives nothing, the carrier stays
        run_in(closet, ['bridge', 'link', 'set', 'dev', port_name(network, node), 'state', '0'])
    else:
        ip_batch(closet, [f'link set dev {port_name(network, node)} down'])


def heal(closet, network, node):
    port = port_name(network, node)
    ip_batch(closet, [f'link set dev {port} up'])
    deadline = time.monotonic() + CARRIER_S
    while True:
        try:
            run_in(closet, ['bridge', 'link', 'set', 'dev', port, 'state', '3'])
            return
        except WiringError as error:
            # The kernel notices the carrier some time after the port is up, and refuses a port without.
            if 'Network is down' not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
