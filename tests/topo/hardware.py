# SPDX-License-Identifier: BSD-3-Clause
"""Runs the splitting by hardware on two of this machine's cores, told as one package of two caches: hardware.py RUN PROGRAM N..."""

import os
import subprocess
import sys

cores = sorted(os.sched_getaffinity(0))[:2]
if len(cores) < 2:
    print('one core only')
    sys.exit(77)
topology = f'package:1 l3:2 core:1 pu:1(indexes={cores[0]},{cores[1]})'
environment = {**os.environ, 'HWLOC_SYNTHETIC': topology, 'HWLOC_THISSYSTEM': '1'}
os.sched_setaffinity(0, cores)
for n in sys.argv[3:]:
    subprocess.run([sys.argv[1], n, sys.argv[2], *map(str, cores)], env=environment, check=True, timeout=60)
