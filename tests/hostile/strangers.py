#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What another user of a node can send to its daemons: usage: strangers.py ATTACK HOST PORT...

Each attack is a function of a host and a port. Becomes uid 65534 first, so that nothing works for being root.
"""
import encodings.idna  # noqa: F401  pylint: disable=unused-import  # what the name of a host needs is not readable later on
import os
import socket
import struct
import sys
import time

WIRE_MAGIC, WIRE_DATA, WIRE_ACK = 0x4d54, 1, 2
FAR = 1 << 20


def connect(host, port):
    s = socket.create_connection((host, port), 5)
    s.settimeout(0.3)
    return s


def spend(s, data):
    """Sends and waits for what comes, or for the end."""
    try:
        s.sendall(data)
        while s.recv(4096):
            pass
    except OSError:
        pass
    s.close()


def packet(kind, number, job=1):
    """A packet as a peer would send it, but for its seal."""
    head = struct.pack('<HBBBBBBIIIIQIIIIBBHIiiIIII', WIRE_MAGIC, 1, kind, 16, 0, 2, 0, 1, 2, 3, 4, job, number, 16, 0, 1, 1, 1, 0, 0, 0, 7,
                       number, 0, 0, 0)
    return head + b'FORGED TEXT 1234'


def rubbish(host, port):
    for n in (1, 100, 4000, 100000):
        spend(connect(host, port), os.urandom(n))


def idle(host, port):
    """Connections that say nothing."""
    held = [connect(host, port) for _ in range(1000)]
    time.sleep(1)
    for s in held:
        s.close()


def impostor(host, port):
    """Names the address of a peer, then sends packets with a far number, acknowledgements, and a proof that is none."""
    address = struct.pack('<H', socket.AF_INET) + struct.pack('>H', port) + socket.inet_aton(host) + bytes(8)
    hello = struct.pack('<IIQIIII', 0x4d4f5448, 176, 0, 3, 0, 16, 0) + address.ljust(128, b'\0') + os.urandom(32)
    frames = b''.join(struct.pack('<IIQ', 0x4d4f5450, len(p), 0) + p for p in (packet(WIRE_DATA, FAR), packet(WIRE_ACK, FAR)))
    proof = struct.pack('<IIQ', 0x4d4f5441, 32, 0) + os.urandom(32)
    for data in (hello + frames, hello + proof + frames, frames):
        spend(connect(host, port), data)


def datagrams(host, port):
    """Fragments of forged packets under marks that are made up."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(200):
        p = packet(WIRE_DATA if number % 2 else WIRE_ACK, FAR + number)
        front = os.urandom(8) + struct.pack('<QQ', number, 0) + struct.pack('<IIQIIHHI', 0x4d4f5446, 1, number, len(p), 0, 0, 1, 0)
        s.sendto(front + p, (host, port))


ATTACKS = {f.__name__: f for f in (rubbish, idle, impostor, datagrams)}


def main():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    for port in sys.argv[3:]:
        ATTACKS[sys.argv[1]](sys.argv[2], int(port))


main()
