#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A user who opens as many connections to a local socket as it gets, and keeps them: usage: hoarder.py SOCKET N HOW

HOW: idle (says nothing), half (half a message), drip (a message, byte by byte), ask (whole requests, whose answers are not read).
Becomes uid 65534. Prints `holding` and how many it has opened; then goes on, opening anew what is closed, until its input ends.
"""
import os
import resource
import select
import socket
import sys

FRAME = b'\x28\x00\x00\x00\x00\x01FM' + bytes(40)  # a rank's request to attach
REQUEST = b'{"version":1,"id":1,"get":"all"}\n'


def message(path):
    return REQUEST if 'status' in path else FRAME


def open_one(path, how):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.setblocking(False)
    try:
        if how == 'half':
            s.send(message(path)[:20])
        elif how == 'ask':
            s.send(REQUEST * 100)
    except OSError:
        pass
    return s


def main():
    path, n, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    n = min(n, limit - 50)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    held = [open_one(path, how) for _ in range(n)]
    print('holding', n, flush=True)
    at = 0
    while not select.select([sys.stdin], [], [], 0.001)[0]:
        for i in range(at, min(at + 20, n)):
            try:
                if how == 'drip':
                    held[i].send(b'\x01')
                elif how != 'ask' and held[i].recv(4096, socket.MSG_PEEK) == b'':
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                held[i].close()
                held[i] = open_one(path, how)
        at = (at + 20) % n


if __name__ == '__main__':
    main()
