# SPDX-License-Identifier: BSD-3-Clause
"""Asks a daemon's status socket (one JSON object per line both ways), as far as a lab needs it."""
import json
import os
import socket

TIMEOUT_S = 2.0


def ask(path, request):
    """One request to the status socket at `path`. Raises OSError or ValueError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        connection.sendall((json.dumps(request) + '\n').encode())
        data = b''
        while not data.endswith(b'\n'):
            piece = connection.recv(1 << 16)
            if not piece:
                raise ValueError('the daemon closed the status socket')
            data += piece
    return json.loads(data)


def reached_nodes(run_dir):
    """(names of the nodes that a daemon has a route to, None) or (empty, what is wrong)."""
    path = os.path.join(run_dir, 'status.sock')
    try:
        answer = ask(path, {'get': 'routes'})
        if not answer.get('ok'):
            return set(), f'status socket: {answer.get("error")}'
        return {route['to'] for route in answer['data'] if route['reachable']}, None
    except (FileNotFoundError, ConnectionRefusedError):
        return set(), 'no status socket yet'
    except (OSError, ValueError, KeyError, TypeError) as error:
        return set(), f'status socket: {error}'
