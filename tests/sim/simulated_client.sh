#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# simulated_client.sh LIBRARY OBJECT SYMBOLS: all of the client library as one object for the simulation. What it asks of the kernel has
# the other names of the file SYMBOLS; its way to the daemon may be replaced; its other names do not meet the daemon's.
# The half of the objects that is for optimising the library as a whole is left out, since a linker would take it instead.
set -e
ld -r --whole-archive "$1" --no-whole-archive -o "$2"
objcopy --remove-section='.gnu.lto_*' --remove-section='.gnu.debuglto_*' --wildcard "$2"
objcopy --redefine-syms="$3" --wildcard --keep-global-symbol='MPI_*' --keep-global-symbol='client_*' \
  --keep-global-symbol='transport_*' --keep-global-symbol='vci_here' --keep-global-symbol='handle_*' \
  --keep-global-symbol=calls_now --weaken-symbol=transport_attach --weaken-symbol=transport_detach \
  --weaken-symbol=transport_abort --weaken-symbol=transport_alive --weaken-symbol=transport_reason "$2"
