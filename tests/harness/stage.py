# SPDX-License-Identifier: BSD-3-Clause
"""The installation under test."""
import os
import signal
import subprocess

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))


class Stage:
    def __init__(self, prefix):
        self.prefix = os.path.realpath(prefix)

    def __getattr__(self, program):
        """stage.mpiexec, stage.motet_lab, ...: the path of an installed program."""
        if program.startswith('_'):
            raise AttributeError(program)
        return os.path.join(self.prefix, 'bin', program.replace('_', '-'))


def find():
    return Stage(os.environ.get('MOTET_STAGE', os.path.join(ROOT, 'build', 'stage')))


def run(argv, timeout_s=60.0, check=True, **options):
    """Runs a command with a deadline; when it passes, the command's whole process group is killed. Returns a CompletedProcess with
    text output (stderr apart). A failed check shows what the command wrote."""
    argv = [str(word) for word in argv]
    options.setdefault('stdin', subprocess.DEVNULL)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace',
                          start_new_session=True, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
            out, err = process.communicate()
            raise AssertionError(f'{" ".join(argv)}: no end after {timeout_s:g} s\n{out}\n{err}') from None
        finally:
            kill_group(process)
    if check and process.returncode != 0:
        raise AssertionError(f'{" ".join(argv)}: exit code {process.returncode}\n{out}\n{err}')
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
