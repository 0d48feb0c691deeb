# SPDX-License-Identifier: BSD-3-Clause
"""motet-lab: a mixed cluster on one machine, made of network namespaces.

cluster   what a lab file says: nodes, networks, addresses (pure data)
drawing   the cluster drawn with letters (pure)
kernel    the system calls that Python lacks: unshare, setns, mount, prctl
limits    what the kernel limits for all namespaces, raised where a lab needs more
wiring    bridges, veth pairs, rates, cut and heal
node      one node's namespaces, its configuration and its daemon
holder    the process that owns a lab; when it dies, by whatever cause, the kernel takes everything away
client    finds running labs and asks their holder
cli       the commands
"""
