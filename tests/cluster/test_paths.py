# SPDX-License-Identifier: BSD-3-Clause
"""What dies on the way of a message while it travels: a gateway's daemon, a cable, a whole gateway. The message arrives all the same,
once and unchanged, as long as some way is left."""
import time

import pytest

from harness import lab as harness_lab

MIB64 = 64 << 20
N_MESSAGES = 4  # several, so that the fault falls into the middle of one


def check_all_arrived(job, n_messages=N_MESSAGES, timeout_s=90):
    code, output = harness_lab.finish(job, timeout_s)
    assert code == 0 and output.count(': ok') == n_messages and 'FAILED' not in output, output


def start_messages(lab, programs, source, target, n_messages=N_MESSAGES):
    """Starts 64 MiB messages from node to node; returns when the first has arrived."""
    job = lab.start_mpi([source, target], programs('bigmsg'), MIB64, 0, 1, n_messages)
    harness_lab.read_until(job, ': ok', 40)
    # What was read is counted by the caller as one message less.
    return job


@pytest.mark.parametrize('gateway', ['gw1', 'gw2'])
def test_kill_of_a_gateway_with_a_second_path(new_lab, programs, gateway):
    lab = new_lab('parallel-gateways')
    job = start_messages(lab, programs, 'a1', 'b1')
    lab.lab('kill', gateway)
    check_all_arrived(job, N_MESSAGES - 1)
    lab.assert_clean()


def test_each_gateway_in_turn_and_back(new_lab, programs):
    """The first dies and returns, then the second: both have to carry everything for a while."""
    lab = new_lab('parallel-gateways')
    job = start_messages(lab, programs, 'a1', 'b1', 10)
    lab.lab('kill', 'gw1')
    harness_lab.read_until(job, ': ok', 40)
    lab.lab('start', 'gw1')
    lab.wait_routes()
    lab.lab('kill', 'gw2')
    check_all_arrived(job, 8)


def test_both_gateways_in_a_row(new_lab, programs):
    lab = new_lab('three-networks')
    output = lab.mpi(['a1', 'c1'], programs('bigmsg'), MIB64, 0, 1, 2, timeout_s=90).stdout
    assert output.count(': ok') == 2


def test_a_gateway_without_substitute_comes_back(new_lab, programs):
    """The only way is gone for two seconds: less than unreachable_after, so the job waits and goes on."""
    lab = new_lab('three-networks')
    job = start_messages(lab, programs, 'a1', 'c1', 4)
    lab.lab('kill', 'gw1')
    time.sleep(2)
    lab.lab('start', 'gw1')
    check_all_arrived(job, 3)


def test_the_only_gateway_is_told_to_end(new_lab, programs):
    """It forwards for the job that needs it, which has no pause, and ends after it."""
    lab = new_lab('three-networks')
    job = start_messages(lab, programs, 'a1', 'c1', 4)
    daemon = next(node['daemon'] for node in lab.status()['nodes'] if node['name'] == 'gw1')
    lab.signal('gw1', 'TERM', daemon)
    check_all_arrived(job, 3)
    deadline = time.monotonic() + 15
    while any(pid == daemon for _, pid, _ in lab.processes('gw1')):
        assert time.monotonic() < deadline, 'the daemon does not end'
        time.sleep(0.05)


@pytest.mark.parametrize('silent', [[], ['--silent']], ids=['carrier-lost', 'silent'])
@pytest.mark.parametrize('network', ['fast', 'slow'])
def test_cut_of_a_rail(new_lab, programs, network, silent):
    lab = new_lab('two-rails')
    job = start_messages(lab, programs, 'n1', 'n2')
    lab.lab('cut', 'n2', network, *silent)
    check_all_arrived(job, N_MESSAGES - 1)
    lab.lab('heal', 'n2', network)


def test_cut_and_heal_many_times(new_lab, programs):
    """A loose contact: the cable of a gateway is pulled and plugged in while messages go through."""
    lab = new_lab('parallel-gateways')
    job = start_messages(lab, programs, 'a1', 'b1', 8)
    for _ in range(4):
        lab.lab('cut', 'gw1', 'left')
        time.sleep(0.4)
        lab.lab('heal', 'gw1', 'left')
        time.sleep(0.4)
    check_all_arrived(job, 7)


def test_round_the_ring(new_lab, programs):
    lab = new_lab('ring')
    job = start_messages(lab, programs, 'n1', 'e1')
    lab.lab('kill', 'g2')  # joins north and east: the other way is over g1, west and g3
    check_all_arrived(job, N_MESSAGES - 1)


def test_halo_exchange_while_a_gateway_dies(new_lab, programs):
    lab = new_lab('parallel-gateways')
    job = lab.start_mpi(['a1', 'b1', 'a2', 'b2'], programs('heat2d'), 400, 4000)
    time.sleep(1.0)
    lab.lab('kill', 'gw2')
    code, output = harness_lab.finish(job, 90)
    assert code == 0 and 'difference to serial 0.0e+00: ok' in output, output
    lab.assert_clean()
