# SPDX-License-Identifier: BSD-3-Clause
"""Frames and control messages for tests that play one end of a socket.

The messages' fields are read from proto/control.proto itself (the part of the language that it uses), so a test fails when the
protocol changes under it and needs no generated code.
"""
import array
import os
import re
import socket
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAGIC = 0x4D46
HEADER = struct.Struct("<IHH")

FRAMES = {"Submit": 20, "Submitted": 21, "Launch": 22, "Launched": 23, "Stdio": 24, "RankExit": 25, "Kill": 26, "JobEnd": 27,
          "StdioWindow": 28, "Spawn": 40, "Spawned": 41, "Exited": 42, "SpawnKill": 43}
NAMES = {number: name for name, number in FRAMES.items()}


def read_schema():
    text = re.sub(r"//[^\n]*", "", open(os.path.join(ROOT, "proto", "control.proto")).read())
    schema = {}
    for name, body in re.findall(r"message (\w+) \{(.*?)\}", text, re.S):
        schema[name] = {field: (int(number), label, kind)
                        for label, kind, field, number in
                        re.findall(r"(required|optional|repeated)\s+(\w+)\s+(\w+)\s*=\s*(\d+)", body)}
    return schema


SCHEMA = read_schema()


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(message, fields):
    out = bytearray()
    for name, value in fields.items():
        number, label, kind = SCHEMA[message][name]
        for item in value if label == "repeated" else [value]:
            if kind in ("string", "bytes") or kind in SCHEMA:
                data = encode(kind, item) if kind in SCHEMA else item.encode() if isinstance(item, str) else item
                out += varint(number << 3 | 2) + varint(len(data)) + data
            else:
                out += varint(number << 3) + varint(int(item))
    return bytes(out)


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def scalar(kind, value):
    if kind.startswith("int") and value >= 1 << 63:
        return value - (1 << 64)
    return bool(value) if kind == "bool" else value


def decode(message, data):
    by_number = {number: (name, label, kind) for name, (number, label, kind) in SCHEMA[message].items()}
    fields = {name: [] for name, (_, label, _) in SCHEMA[message].items() if label == "repeated"}
    at = 0
    while at < len(data):
        key, at = take_varint(data, at)
        name, label, kind = by_number[key >> 3]
        if key & 7 == 0:
            value, at = take_varint(data, at)
            values = [scalar(kind, value)]
        else:
            size, at = take_varint(data, at)
            chunk, at = data[at:at + size], at + size
            if kind == "string":
                values = [chunk.decode(errors="replace")]
            elif kind == "bytes":
                values = [bytes(chunk)]
            elif kind in SCHEMA:
                values = [decode(kind, chunk)]
            else:
                values, inner = [], 0
                while inner < len(chunk):
                    value, inner = take_varint(chunk, inner)
                    values.append(scalar(kind, value))
        if label == "repeated":
            fields[name] += values
        else:
            fields[name] = values[-1]
    return fields


class Peer:
    """One end of a frame socket. Every wait has a limit."""

    def __init__(self, sock, limit=10.0):
        self.sock = sock
        sock.settimeout(limit)

    def send(self, message, /, fds=(), **fields):
        body = encode(message, fields)
        data = HEADER.pack(len(body), FRAMES[message], MAGIC) + body
        if fds:
            sent = self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
            data = data[sent:]
        self.sock.sendall(data)

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def receive(self):
        size, kind, magic = HEADER.unpack(self.read(HEADER.size))
        assert magic == MAGIC
        name = NAMES[kind]
        return name, decode(name, self.read(size))

    def expect(self, message):
        name, fields = self.receive()
        assert name == message, (name, fields)
        return fields

    def close(self):
        self.sock.close()
