# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests that run real daemons and real programs (tests/lab, tests/cluster, tests/mpi).

They work on an installation (`meson install` into a stage): MOTET_STAGE names it, build/stage is where quickstart puts it. Labs are
made of namespaces; where the kernel allows none, the tests that need them are skipped with that reason.
"""
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.dont_write_bytecode = True

from harness import examples, lab, stage  # noqa: E402  pylint: disable=wrong-import-position


def pytest_configure(config):
    config.addinivalue_line('markers', 'real_input: fetches and builds programs of other people')
    config.addinivalue_line('markers', 'alone: measures time or processor, so nothing else may run beside it')
    # A shell starts what runs in its background with interrupts ignored; the deadline's is to end the run with its results.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope='session')
def installation():
    found = stage.find()
    if not os.path.exists(found.mpiexec):
        pytest.exit(f'nothing is installed in {found.prefix}: run ./quickstart, or name an installation in MOTET_STAGE', 2)
    return found


@pytest.fixture(scope='session')
def programs(installation, tmp_path_factory):
    """The example programs, compiled by our mpicc: a function from name to path."""
    return examples.build(installation.mpicc, tmp_path_factory.mktemp('examples'))


@pytest.fixture(scope='session')
def namespaces(installation):
    """Skips where no lab can be."""
    reason = lab.why_impossible(installation)
    if reason:
        pytest.skip(f'no namespaces here: {reason}')


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """On a failure the report carries what the daemons wrote."""
    outcome = yield
    report = outcome.get_result()
    if report.when == 'call' and report.failed:
        for one in lab.Lab.up_now:
            report.sections.append((f'daemons of lab {one.name}', one.log_tails()))


@pytest.fixture(scope='module')
def shared_lab(installation, namespaces, tmp_path_factory):
    """A function that brings a lab up for the tests of one module; the same one when asked again for the same file."""
    made = {}

    def bring_up(file):
        if file not in made:
            made[file] = lab.Lab(installation, file, tmp_path_factory.mktemp('logs'))
        return made[file]

    yield bring_up
    for one in made.values():
        one.down()


@pytest.fixture(scope='module')
def three_networks(shared_lab):
    """The lab of that name, with routes between all its nodes."""
    one = shared_lab('three-networks')
    one.wait_routes()
    return one


@pytest.fixture
def new_lab(installation, namespaces, tmp_path):
    """A function that brings up a lab of the test's own."""
    made = []

    def bring_up(file, **options):
        made.append(lab.Lab(installation, file, tmp_path / f'logs{len(made)}', **options))
        return made[-1]

    yield bring_up
    for one in made:
        one.down()
