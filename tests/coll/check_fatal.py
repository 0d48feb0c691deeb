# SPDX-License-Identifier: BSD-3-Clause
"""check_fatal.py LOCAL_RUN PROGRAM: an error under MPI_ERRORS_ARE_FATAL ends the job with one clear message."""

import subprocess
import sys

MPI_ERR_RANK = 6

local_run, program = sys.argv[1:3]
done = subprocess.run([local_run, '3', program], capture_output=True, text=True, timeout=60)
messages = [line for line in done.stderr.splitlines() if line.startswith('motet:')]
if len(messages) != 1:
    sys.exit(f'{len(messages)} messages, expected one:\n{done.stderr}')
for part in ('rank 1', 'node', 'MPI_Send', 'MPI_COMM_WORLD', 'MPI_ERR_RANK', 'invalid rank', '99'):
    if part not in messages[0]:
        sys.exit(f'"{part}" is missing in: {messages[0]}')
if done.returncode != MPI_ERR_RANK:
    sys.exit(f'exit code {done.returncode}, expected {MPI_ERR_RANK}')
