"""A gRPC call before its request is read: an address, and a message that has to arrive in time.

Methods here are declared as streams of requests, although clients send one: gRPC would otherwise wait for the message,
for ever, before it hands the call over, and a call that nobody has been handed cannot be counted.
"""

import asyncio
from typing import Any
from urllib.parse import unquote

import grpc

from chassis import http_rules, problems

Context = grpc.aio.ServicerContext[bytes, Any]


async def message(context: Context) -> bytes:
    """The one message of the call."""
    try:
        async with asyncio.timeout(http_rules.BODY_S):
            data: object = await context.read()
    except TimeoutError:
        raise http_rules.body_too_late() from None
    if not isinstance(data, bytes):  # the end instead of it
        raise problems.Problem(400, detail="The call has no message.")
    return data


def address(context: Context) -> str:
    """`ipv4:127.0.0.1:4711` and `ipv6:%5B::1%5D:4711` without family and port."""
    peer = context.peer()
    return unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]") or peer
