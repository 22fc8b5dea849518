"""HTTP spoken byte by byte, for tests of what a server does with it."""

import json
import select
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def problem(self) -> tuple[int, str]:
        """Status and code of a problem that is one in every respect."""
        body = json.loads(self.body) if self.headers["content-type"].startswith("application/problem+json") else {}
        if (body.get("status"), body.get("request_id")) != (self.status, self.headers.get("x-request-id")):
            raise AssertionError(f"no problem: {self}")
        return self.status, body["code"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def read_answer(connection: socket.socket) -> Answer | None:
    """The next answer on the connection; None if it ends before one."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = _received(connection)
        if not more:
            return None
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Answer(int(first.split()[1]), headers, body)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def request(port: int, sent: bytes) -> Answer:
    """The answer to these bytes on a connection of their own."""
    with opened(port) as connection:
        connection.sendall(sent)
        answer = read_answer(connection)
    if answer is None:
        raise AssertionError("the connection ended without an answer")
    return answer


def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends the connection, waiting for that."""
    return not _received(connection)


def trickle(connection: socket.socket, begin: bytes, drop: bytes, every_s: float = 0.1) -> Answer | None:
    """What the server answers a caller that begins so and then sends a drop at a time, without end."""
    connection.sendall(begin)
    for _ in range(int(PATIENCE_S / every_s)):
        if select.select([connection], [], [], every_s)[0]:
            return read_answer(connection)
        with suppress(ConnectionError):  # ended in this moment: what was answered before can still be read
            connection.sendall(drop)
    raise AssertionError("the server still listens")
