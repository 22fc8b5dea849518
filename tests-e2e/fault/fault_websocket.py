"""The broker's websocket through the proxy: byte for byte, or message by message when messages are to be changed."""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

CHUNK = 65_536
_TEXT_OR_BINARY = (1, 2)


def pass_through(
    head: bytes, client: socket.socket, upstream: socket.socket, change: Callable[[bytes], bytes] | None
) -> None:
    """Until one side ends; then the other is ended too."""
    upstream.settimeout(None)
    upstream.sendall(head)
    up = threading.Thread(target=_copy, args=(client, upstream), daemon=True)
    up.start()
    if change is None:
        _copy(upstream, client)
    else:
        _change_messages(upstream, client, change)
    up.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    _end(source, target)


def _end(*sockets: socket.socket) -> None:
    for connection in sockets:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _change_messages(upstream: socket.socket, client: socket.socket, change: Callable[[bytes], bytes]) -> None:
    with suppress(OSError), upstream.makefile("rb") as source:
        while line := source.readline(CHUNK):  # the broker's answer to the upgrade
            client.sendall(line)
            if line == b"\r\n":
                break
        while (frame := _frame(source)) is not None:
            first, payload = frame
            wanted = change(payload) if first & 0x0F in _TEXT_OR_BINARY else payload
            client.sendall(_framed(first, wanted))
    _end(upstream, client)


def _frame(source: BinaryIO) -> tuple[int, bytes] | None:
    """Its first byte and its content. A server's frames are not masked, and the paper broker does not fragment."""
    head = source.read(2)
    if len(head) < 2:
        return None
    length = head[1] & 0x7F
    if length == 126:
        (length,) = struct.unpack("!H", source.read(2))
    elif length == 127:
        (length,) = struct.unpack("!Q", source.read(8))
    return head[0], source.read(length)


def _framed(first: int, payload: bytes) -> bytes:
    if len(payload) < 126:
        return bytes((first, len(payload))) + payload
    return bytes((first, 126)) + struct.pack("!H", len(payload)) + payload
