"""Whatever breaks while trading goes on, every subscriber's log is exactly the account's.

The large version of the same: TIP_SEAM_SUBSCRIBERS=100 TIP_SEAM_DISCONNECTS=1000 pytest -s <this file>
"""

import asyncio
import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import UUID

import grpc

from tip_testing.identity_fixtures import Organization
from trading_proto import trading_pb2

from .gateway_process import Gateway, StartGateway
from .log_writer import Writer
from .proxy import Proxy
from .subscribers import ALL_TYPES, Metadata, connected, key, run, subscribe

SUBSCRIBERS = int(os.environ.get("TIP_SEAM_SUBSCRIBERS", "10"))
DISCONNECTS = int(os.environ.get("TIP_SEAM_DISCONNECTS", "50"))
KILLS = max(2, DISCONNECTS // 200)
SILENCE_S = 4.0
"""Heartbeats come every second: whoever receives nothing for this long has lost the connection."""


class Trading(threading.Thread):
    """Appends events without a pause until stopped, some with a hint and some without."""

    def __init__(self, writer: Writer, account_id: UUID, seed: int) -> None:
        super().__init__(daemon=True)
        self._writer, self._account_id, self._random = writer, account_id, random.Random(seed)
        self._stopping = threading.Event()
        self.last = 0
        self.trades: list[int] = []

    def run(self) -> None:
        while not self._stopping.is_set():
            count, trade = self._random.randint(1, 6), self._random.random() < 0.3
            kind, hint = "BROKER_TRADE" if trade else "BROKER_ORDER", self._random.random() < 0.5
            last = self._writer.append(self._account_id, count, kind=kind, hint=hint)
            self.trades += range(last - count + 1, last + 1) if trade else ()
            self.last = last
            time.sleep(self._random.random() * 0.02)

    def stop(self) -> int:
        self._stopping.set()
        self.join()
        return self.last


@dataclass
class Follower:
    """A client as it should be: comes back after the last sequence it has seen, wherever there is a gateway."""

    metadata: Metadata
    account_id: UUID
    types: list[int]
    targets: list[str]
    random: random.Random
    log: list[int] = field(default_factory=list)
    last: int = 0
    goal: int | None = None
    call: object = None
    received: bool = False
    losses: Counter[str] = field(default_factory=Counter)

    async def follow(self) -> None:
        while not self._is_done:
            try:
                await self._read(self.random.choice(self.targets))
            except (grpc.aio.AioRpcError, EOFError, TimeoutError, Dropped) as loss:
                name = loss.code().name if isinstance(loss, grpc.aio.AioRpcError) else type(loss).__name__
                self.losses[name] += self.received  # an attempt that came to nothing is no disconnect
                await asyncio.sleep(0.05)

    @property
    def _is_done(self) -> bool:
        return self.goal is not None and self.last >= self.goal

    async def _read(self, target: str) -> None:
        self.received = False
        async with connected(target) as channel:
            async with asyncio.timeout(SILENCE_S):
                subscriber = await subscribe(
                    channel, self.metadata, self.account_id, types=self.types, after=self.last, established=False
                )
            self.call, self.dropped = subscriber.call, False
            while not self._is_done:
                async with asyncio.timeout(SILENCE_S):
                    event = await self._next(subscriber)
                self.received = True
                if event.type:
                    self.log.append(event.sequence)
                self.last = event.sequence

    async def _next(self, subscriber) -> trading_pb2.TradingEvent:
        try:
            return await subscriber.next()
        except asyncio.CancelledError:
            if self.dropped:
                raise Dropped from None
            raise

    def drop(self) -> None:
        """Give the stream up, as an application that is stopped does."""
        if self.call is not None and not self.call.done():
            self.dropped = True
            self.call.cancel()


class Dropped(Exception):
    """The subscriber itself gave up the stream."""


async def _break_things(
    followers: list[Follower], proxies: list[Proxy], gateways: list[Gateway], chance: random.Random
) -> Counter[str]:
    """Until there were enough disconnects: every fault in its turn, whom it hits and when by chance. What was done."""
    done, turns = Counter[str](), itertools.cycle(["freeze", *["drop"] * 7, "cut", *["drop"] * 7, "cut"])
    while (lost := sum(follower.losses.total() for follower in followers)) < DISCONNECTS:
        await asyncio.sleep(chance.random() * 0.1)
        if lost >= (done["kill"] + 1) * DISCONNECTS // (KILLS + 1):
            done["kill"] += 1
            gateway = gateways[done["kill"] % len(gateways)]
            gateway.stop(signal.SIGKILL)
            await asyncio.to_thread(gateway.start)
            continue
        turn = next(turns)
        done[turn] += 1
        match turn:
            case "drop":
                chance.choice(followers).drop()
            case "cut":
                chance.choice(proxies).cut()
            case "freeze":
                chance.choice(proxies).freeze()
    # Half-open connections take their time to be noticed, and until now something else may always have come first.
    while not any(follower.losses["TimeoutError"] for follower in followers):
        for proxy in proxies:
            proxy.freeze()
        await asyncio.sleep(SILENCE_S + 1)
    return done


def test_every_log_is_complete_whatever_breaks(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    chance = random.Random(20_261_115)
    settings = {"HEARTBEAT_SECONDS": "1", "BUFFER_EVENTS": "32", "KEEPALIVE_SECONDS": "2"}
    gateways = [start_gateway(**settings, KEEPALIVE_TIMEOUT_SECONDS="1") for _ in range(2)]
    trading = Trading(writer, account_id, chance.randint(0, 2**32))

    async def scenario() -> tuple[list[Follower], Counter[str]]:
        async with AsyncExitStack() as stack:
            ports = [int(gateway.environment["PORT"]) for gateway in gateways]
            return await followed([await stack.enter_async_context(Proxy(port)) for port in ports])

    async def followed(proxies: list[Proxy]) -> tuple[list[Follower], Counter[str]]:
        targets = [proxy.target for proxy in proxies] + [gateway.target for gateway in gateways]
        followers = [
            Follower(
                key(acme.api_keys["paper"]),
                account_id,
                [trading_pb2.EVENT_TYPE_BROKER_TRADE] if number % 5 == 4 else ALL_TYPES,
                targets,
                random.Random(number),
            )
            for number in range(SUBSCRIBERS)
        ]
        following = [asyncio.create_task(follower.follow()) for follower in followers]
        trading.start()
        while any(len(follower.log) < 3 for follower in followers):
            await asyncio.sleep(0.05)
        done = await _break_things(followers, proxies, gateways, chance)
        goal = await asyncio.to_thread(trading.stop)
        for follower in followers:
            follower.goal = goal
            follower.drop()  # whoever waits for an event that will never come has to look at its goal
        await asyncio.wait_for(asyncio.gather(*following), 60)
        return followers, done

    followers, done = run(scenario())

    everything = list(range(1, trading.last + 1))
    for follower in followers:
        assert follower.log == (everything if follower.types == ALL_TYPES else trading.trades)
    losses: Counter[str] = sum((follower.losses for follower in followers), Counter())
    assert losses.total() >= DISCONNECTS
    assert losses["UNAVAILABLE"] and losses["Dropped"] and losses["TimeoutError"], losses
    assert done.keys() == {"drop", "cut", "freeze", "kill"}
    print(f"{SUBSCRIBERS} subscribers, {trading.last} events, {dict(done)}, disconnects: {dict(losses)}")  # noqa: T201


def test_a_half_open_connection_is_noticed_by_the_gateway(
    start_gateway: StartGateway, acme: Organization, account_id: UUID
) -> None:
    gateway = start_gateway(KEEPALIVE_SECONDS="1", KEEPALIVE_TIMEOUT_SECONDS="1")

    async def scenario() -> None:
        async with Proxy(int(gateway.environment["PORT"])) as proxy, connected(proxy.target) as channel:
            await subscribe(channel, key(acme.api_keys["paper"]), account_id)
            assert gateway.metric("tip_stream_subscribers") == 1
            proxy.freeze()
            async with asyncio.timeout(20):  # without keepalive it would be minutes
                while gateway.metric("tip_stream_subscribers"):
                    await asyncio.sleep(0.1)

    run(scenario())
