#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# simulated_client.sh OBJECT SYMBOLS LIBRARY...: all of the client library as one object for the simulation. What it asks of the kernel has
# the other names of the file SYMBOLS; its way to the daemon may be replaced; its other names do not meet the daemon's.
# The half of the objects that is for optimising the library as a whole is left out, since a linker would take it instead.
set -e
object=$1
symbols=$2
shift 2
ld -r --whole-archive "$@" --no-whole-archive -o "$object"
objcopy --remove-section='.gnu.lto_*' --remove-section='.gnu.debuglto_*' --wildcard "$object"
objcopy --redefine-syms="$symbols" --wildcard --keep-global-symbol='MPI_*' --keep-global-symbol='client_*' \
  --keep-global-symbol='transport_*' --keep-global-symbol='vci_here' --keep-global-symbol='handle_*' \
  --keep-global-symbol=calls_now --weaken-symbol=transport_attach --weaken-symbol=transport_detach \
  --weaken-symbol=transport_abort --weaken-symbol=transport_alive --weaken-symbol=transport_reason "$object"
