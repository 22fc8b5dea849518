"""Thousands of streams of one organization, opened and read by a process of their own.

Every stream shows one of a few users' tokens with an x-organization-id of its own, which used to make each of them a
credential to be verified by itself.
"""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import grpc

from bench.stream_clients import STREAMS_A_CONNECTION, SUBSCRIBE, request
from bench.stream_stage import Stage
from identity import usecases
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures

STREAMS_A_USER = 200
_AT_ONCE = 50


@dataclass(frozen=True)
class Tenant:
    """An organization with an account and as many users as its streams need."""

    organization_id: UUID
    account_id: UUID
    tokens: Sequence[str]


def tenant(on: Stage, users: int) -> Tenant:
    identity = IdentityFixtures(on.platform.administrator_environment("identity"))
    name = f"crowd-{uuid4().hex[:12]}"
    made = usecases.create_organization(identity.deps, identity.provider, name, name)
    for number in range(users):
        usecases.put_member(identity.deps, made, f"{name}-{number}", "member")
    tokens = [identity.user_token(f"{name}-{number}", name, "member") for number in range(users)]
    identity.close()
    with on.platform.admin() as admin:
        return Tenant(made.id, add_account(admin, made.id), tokens)


@contextmanager
def crowd(of: Tenant, target: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """As many open streams, which are read."""
    command = [sys.executable, "-m", "bench.crowd", target, str(of.account_id), str(count)]
    environment = {**os.environ, "TIP_BENCH_TOKENS": "\n".join(of.tokens)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


def imported_from(checkout: str | None) -> dict[str, str]:
    """What makes a process run the gateway and the chassis of that checkout."""
    if checkout is None:
        return {}
    return {"PYTHONPATH": ":".join(f"{checkout}/{path}/src" for path in ("services/stream-gateway", "shared/chassis"))}


async def keep_open(target: str, account_id: str, count: int, tokens: Sequence[str]) -> None:
    async with AsyncExitStack() as stack:
        calls: list[Any] = []
        for start in range(0, count, STREAMS_A_CONNECTION):
            options = (("grpc.use_local_subchannel_pool", 1),)
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target, options=options))
            method = channel.unary_stream(SUBSCRIBE)
            for first in range(start, min(start + STREAMS_A_CONNECTION, count), _AT_ONCE):
                numbers = range(first, min(first + _AT_ONCE, start + STREAMS_A_CONNECTION, count))
                opened = [method(request(UUID(account_id)), metadata=_metadata(tokens, n)) for n in numbers]
                await asyncio.gather(*(call.read() for call in opened))
                calls += opened
        print("ready", flush=True)
        ended = await asyncio.gather(*(_read(call) for call in calls))
        print(f"ended {dict(Counter(ended))}", flush=True)
        await asyncio.sleep(3_600)


def _metadata(tokens: Sequence[str], number: int) -> tuple[tuple[str, str], ...]:
    token = tokens[number // STREAMS_A_USER % len(tokens)]
    return (("authorization", f"Bearer {token}"), ("x-organization-id", str(uuid4())))


async def _read(call: Any) -> str:
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError:
        pass
    return str((await call.code()).name)


if __name__ == "__main__":
    asyncio.run(keep_open(sys.argv[1], sys.argv[2], int(sys.argv[3]), os.environ["TIP_BENCH_TOKENS"].split()))
