# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel limits for all namespaces together, and a lab of many nodes needs more of.

Neighbour tables: the entries (address to MAC) of all namespaces count against one limit, net.ipv4.neigh.default.gc_thresh3, 1024 as
kernels are shipped. Beyond it packets to new neighbours are dropped, which looks like missing cables. Every node of a network may
have an entry for every other, so a network of n nodes needs n (n - 1).
"""
import os

NEIGHBOURS = '/proc/sys/net/ipv4/neigh/default'
STATISTICS = '/proc/net/stat/arp_cache'
SHIPPED = 1024  # the limit of a machine that nobody has changed
SPARE = 1024    # for the machine itself and for other labs


def neighbours_needed(plan):
    """Entries that the nodes of a lab may have together."""
    return sum(len(network.nodes) * (len(network.nodes) - 1) for network in plan.networks)


def read_number(path):
    with open(path, encoding='ascii') as file:
        return int(file.read())


def raise_neighbours(plan, folder=NEIGHBOURS):
    """Makes room in the neighbour tables. Returns a note for the user, or None when there was enough."""
    needed = neighbours_needed(plan) + SPARE
    limit_file = os.path.join(folder, 'gc_thresh3')
    try:
        limit = read_number(limit_file)
    except (OSError, ValueError):
        if neighbours_needed(plan) <= SHIPPED // 2:
            return None
        return (f'this lab needs up to {needed} neighbour entries, and whether the machine allows so many cannot be seen from here: '
                f'sysctl -w net.ipv4.neigh.default.gc_thresh3={needed} outside if nodes do not find each other')
    if neighbours_needed(plan) <= limit // 2:
        return None
    try:
        for name, value in (('gc_thresh3', needed), ('gc_thresh2', needed // 2)):  # the lower one may not pass the upper one
            path = os.path.join(folder, name)
            if read_number(path) < value:
                with open(path, 'w', encoding='ascii') as file:
                    file.write(str(value))
    except (OSError, ValueError) as error:
        if neighbours_needed(plan) <= limit:
            return None  # it fits, if nobody else needs any
        return (f'this lab needs up to {needed} neighbour entries and this machine allows {limit} '
                f'({getattr(error, "strerror", None) or error}): sysctl -w net.ipv4.neigh.default.gc_thresh3={needed}, '
                'or nodes will not find each other')
    return f'net.ipv4.neigh.default.gc_thresh3 raised from {limit} to {needed} on this machine'


def overflows(path=STATISTICS):
    """How often the neighbour table was full since the machine started; 0 where that cannot be seen."""
    try:
        with open(path, encoding='ascii') as file:
            rows = [line.split() for line in file]
        column = rows[0].index('table_fulls')
        return sum(int(row[column], 16) for row in rows[1:])
    except (OSError, ValueError, IndexError):
        return 0
