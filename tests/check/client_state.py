#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""client_state.py LIBRARY: fails when libmpi_abi has an object that changes and belongs to no client (client/client.h).

What a module keeps lies in its part, `MODULE_first`, and is reached through `MODULE_here`; anything else in .data or .bss would be
shared by all clients of a process. Constants that hold addresses are in .data.rel.ro and are none. Static variables that remain are
named below, each with its reason.
"""
import subprocess
import sys

KEPT = {
    'library': 'client.c: names the library\'s own client',
    'once': 'err.c: the key of a thread\'s last error, which belongs to the thread',
    'key': 'err.c: the same',
    'has_key': 'err.c: the same',
    'booleans': 'abi.c: of the Fortran compiler, said once, before or after any client begins',
    'topology': 'hardware.c: of the machine, never changed once loaded',
}
# What the linker and the compiler's start files add.
FOREIGN = {'completed', '__dso_handle', '__TMC_END__', '_GLOBAL_OFFSET_TABLE_', '_DYNAMIC', '__cpu_model', '__cpu_features2'}


def changing_objects(table):
    """Names of the objects in .data and .bss in the output of `objdump -t`, without the numbers of static ones inside functions."""
    for line in table.splitlines():
        words = line.split()
        if ' O ' not in line or len(words) < 5:
            continue
        section, name = words[-3] if words[-2] != '.hidden' else words[-4], words[-1]
        if section.startswith(('.data', '.bss')) and not section.startswith('.data.rel.ro'):
            yield name.split('.')[0]


def strangers(names):
    known = set(KEPT) | FOREIGN
    return sorted({name for name in names if name not in known and not name.endswith(('_first', '_here'))
                   and not name.startswith(('__asan', '__gcov', '__tsan', '__ubsan', '_ZN', '__odr'))})


def self_test():
    table = ('0000 l     O .bss\t0008              counter.0\n0000 l     O .data.rel.ro\t0008   names\n'
             '0000 l     O .bss\t0008              vci_first\n0000 g     O .data\t0008  .hidden  vci_here\n'
             '0000 l     O .tbss\t0008             self\n0000 l     F .text\t0008              vci_init\n')
    found = strangers(changing_objects(table))
    if found != ['counter']:
        print(f'expected counter alone, got {found}')
        return 1
    return 0


def main():
    if self_test():
        return 1
    table = subprocess.run(['objdump', '-t', sys.argv[1]], check=True, capture_output=True, text=True).stdout
    names = list(changing_objects(table))
    if 'vci_first' not in names:
        print(f'{sys.argv[1]} has no symbols')
        return 77  # stripped: nothing can be said
    found = strangers(names)
    for name in found:
        print(f'{name}: changes, and belongs to no client; see client/client.h')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
