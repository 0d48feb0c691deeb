# SPDX-License-Identifier: BSD-3-Clause
"""One rank of mpi4py's test suite: runs its test/main.py as it is, and writes down what became of each case.

usage: mpi4py_rank.py TEST_FOLDER OUTPUT_FOLDER [arguments of main.py]; started by run_mpi4py.py under an mpiexec.

What the rank prints goes to OUTPUT_FOLDER/rank.N.out; OUTPUT_FOLDER/rank.N.cases gets a line `begin NAME` before each case and a line
`OUTCOME NAME` after it (with the reason of a skip), so that the last line of a rank that hangs names the case in which it hangs.
"""
import os
import sys
import unittest

RANK_VARIABLES = ('PMI_RANK', 'OMPI_COMM_WORLD_RANK')


def own_rank():
    return next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), '0')


def redirect(path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


class Recorder(unittest.TextTestResult):
    """The usual report, and the record beside it."""

    record = None

    def note(self, outcome, test, more=''):
        self.record.write(f'{outcome} {test.id()}{more}\n')
        self.record.flush()

    def startTest(self, test):
        self.note('begin', test)
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note('passed', test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note('failed', test)

    def addError(self, test, err):
        super().addError(test, err)
        self.note('error', test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note('skipped', test, f' {reason}'.replace('\n', ' '))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note('passed', test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note('failed', test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note('failed' if issubclass(err[0], test.failureException) else 'error', test)


def main():
    folder, output = sys.argv[1:3]
    stem = os.path.join(output, f'rank.{own_rank()}')
    redirect(stem + '.out')
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    sys.argv[:] = [os.path.join(folder, 'main.py'), *sys.argv[3:]]
    suite = __import__('main')
    with open(stem + '.cases', 'w', encoding='utf-8') as Recorder.record:
        suite.main(module=None, testRunner=unittest.TextTestRunner(resultclass=Recorder, verbosity=2))


if __name__ == '__main__':
    main()
