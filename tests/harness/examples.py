# SPDX-License-Identifier: BSD-3-Clause
"""The example programs as a user would build them."""
import os

from . import stage

FOLDER = os.path.join(stage.ROOT, 'examples')


def build(mpicc, folder):
    """Compiles all examples into `folder`. Returns a function from name to path."""
    stage.run(['make', '-s', '-C', FOLDER, f'MPICC={mpicc}', f'OUT={folder}', 'CFLAGS=-O2 -Wall -Wextra -Werror'],
              timeout_s=120)
    return lambda name: os.path.join(str(folder), name)
