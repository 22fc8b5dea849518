"""Load without a tool: so many connections, each sending its next request as soon as the last one is answered."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit


class Answers(NamedTuple):
    count: int
    seconds: float
    """Until the last one."""

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


def answers(base: str, messages: Sequence[bytes], *, connections: int, seconds: float, status: int) -> Answers:
    """`messages` are whole HTTP requests, sent in random order. Another status ends the run."""
    return asyncio.run(_drive(base, messages, connections, seconds, status))


def requests_per_second(
    base: str, messages: Sequence[bytes], *, connections: int, seconds: float, status: int
) -> float:
    return answers(base, messages, connections=connections, seconds=seconds, status=status).per_second


async def _drive(base: str, messages: Sequence[bytes], connections: int, seconds: float, status: int) -> Answers:
    began = time.monotonic()
    callers = (_call(base, messages, began + seconds, status) for _ in range(connections))
    return Answers(sum(await asyncio.gather(*callers)), time.monotonic() - began)


async def _call(base: str, messages: Sequence[bytes], until: float, status: int) -> int:
    answered = 0
    while time.monotonic() < until:
        answered += await _connection(base, messages, until, status)
    return answered


async def _connection(base: str, messages: Sequence[bytes], until: float, status: int) -> int:
    """Until the time is up, or an answer says that it is the connection's last: a web process is replaced after so many
    requests."""
    address = urlsplit(base)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    answered, is_open = 0, True
    while is_open and time.monotonic() < until:
        writer.write(random.choice(messages))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = await reader.readexactly(int(_header(head, b"content-length")))
        if int(head.split(b" ", 2)[1]) != status:
            raise SystemExit(f"bench: {head.decode()}{body.decode()}")
        answered += 1
        is_open = _header(head, b"connection") != b"close"
    writer.close()
    return answered


def _header(head: bytes, name: bytes) -> bytes:
    return head.partition(b"\r\n%b:" % name)[2].partition(b"\r\n")[0].strip()
