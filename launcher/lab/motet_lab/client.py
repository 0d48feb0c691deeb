# SPDX-License-Identifier: BSD-3-Clause
"""Finds running labs and talks to their holders; enters a node.

A lab is an abstract socket named after the user and the lab, so a list of labs is a list of sockets and can never be stale.
"""
import json
import os
import re
import socket
import struct

PREFIX = 'motet-lab'
TIMEOUT_S = 90.0


class LabError(Exception):
    """Something the user must know; the text says it all."""


def socket_name(name):
    return f'\0{PREFIX}/{os.getuid()}/{name}'


def running():
    """Names of this user's labs."""
    pattern = re.compile(rf'@{PREFIX}/{os.getuid()}/(\S+)$', re.MULTILINE)
    with open('/proc/net/unix', encoding='utf-8', errors='replace') as file:
        return sorted(set(pattern.findall(file.read())))


def listen(name):
    """The listening socket of a new lab. Raises LabError when the name is taken."""
    if not re.match(r'^[A-Za-z0-9_.-]{1,40}$', name):
        raise LabError(f'"{name}" is no name for a lab: letters, digits, ., - and _, at most 40')
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(socket_name(name))
    except OSError:
        listener.close()
        raise LabError(f'lab {name} is up already: motet-lab --name {name} down, or choose another --name') from None
    listener.listen(16)
    return listener


def choose(name):
    """The lab that is meant: the named one, $MOTET_LAB, or the only one."""
    name = name or os.environ.get('MOTET_LAB')
    labs = running()
    if name:
        if name not in labs:
            raise LabError(f'lab {name} is not up' + (f'; up: {" ".join(labs)}' if labs else ''))
        return name
    if not labs:
        raise LabError('no lab is up: motet-lab up FILE')
    if len(labs) > 1:
        raise LabError(f'several labs are up, name one with --name: {" ".join(labs)}')
    return labs[0]


def ask(name, do, **arguments):
    """One request. Returns (answer, descriptors). Raises LabError, also with the holder's refusal."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(socket_name(name))
            owner = struct.unpack('iII', connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
            if owner != os.getuid():
                raise LabError(f'the socket of lab {name} belongs to user {owner}, not to you')
            connection.sendall((json.dumps({'do': do, **arguments}) + '\n').encode())
            data, descriptors = b'', []
            while not data.endswith(b'\n'):
                piece, got, _, _ = socket.recv_fds(connection, 1 << 16, 4)
                descriptors += got
                if not piece:
                    raise LabError(f'lab {name} went down')
                data += piece
        except OSError as error:
            raise LabError(f'lab {name}: {error.strerror or error}') from None
    answer = json.loads(data)
    if not answer.pop('ok'):
        raise LabError(answer.get('error', 'refused'))
    return answer, descriptors
