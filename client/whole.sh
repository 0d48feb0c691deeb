#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# whole.sh OBJECT COMPILER... -- LIBRARY...: all of the client library as one object, optimised as a whole (gcc's link-time optimisation).
# The names MPI_* come out of that as strong ones and are made weak again, as profiling wants them (MPI-5.0 section 15.2).
set -e
object=$1
shift
compiler=
while [ "$1" != -- ]; do
    compiler="$compiler $1"
    shift
done
shift
# The compiler may be several words.
# shellcheck disable=SC2086
$compiler -r -nostdlib -flto=auto -flinker-output=nolto-rel -O3 -fPIC -Wl,--whole-archive "$@" -Wl,--no-whole-archive -o "$object"
objcopy --wildcard --weaken-symbol='MPI_*' "$object"
