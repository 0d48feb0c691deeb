# SPDX-License-Identifier: BSD-3-Clause
"""check_names.py PROGRAM: what MOTET_COLL_* must not hold is refused with the variable, its value and what it may hold."""
import os
import subprocess
import sys

CASES = (
    ('MOTET_COLL_BCAST', 'magic', 'binomial, scatter_allgather, pipeline, nodes, networks, shared'),
    ('MOTET_COLL_SCAN', 'binomial', 'doubling, nodes, networks, shared'),
    ('MOTET_COLL_BCATS', 'binomial', 'BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, REDUCE_SCATTER, SCAN'),
    ('MOTET_COLL_', 'ring', 'BARRIER, BCAST'),
)

failed = False
for variable, value, known in CASES:
    done = subprocess.run([sys.argv[1], '-n', '2'], env=dict(os.environ, **{variable: value}), capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode == 0 or f'{variable}={value}' not in done.stderr or known not in done.stderr:
        print(f'{variable}={value}: {done.returncode}: {done.stderr}')
        failed = True
sys.exit(failed)
