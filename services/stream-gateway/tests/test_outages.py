"""The database or Redis is away: streams stay and lose nothing; they end when callers went unseen for too long."""

import asyncio
import signal
from collections.abc import Callable
from uuid import UUID

import grpc
import pytest
import requests

from tip_testing.identity_fixtures import Organization
from tip_testing.platform_plugin import Platform
from tip_testing.waiting import eventually_async

from .gateway_process import Gateway, StartGateway, gateway_behind_proxy
from .log_writer import Writer
from .proxy import Proxy
from .subscribers import connected, key, outcome, run, subscribe

Code = grpc.StatusCode
Away = Callable[[Proxy], None]
AWAY = {"refuses": Proxy.refuse, "is-silent": Proxy.silence}
either_way = pytest.mark.parametrize("go_away", AWAY.values(), ids=AWAY)


@either_way
def test_a_database_away_for_a_moment_costs_time_and_no_event(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID, writer: Writer, go_away: Away
) -> None:
    async def scenario() -> tuple[list[int], list[int], int]:
        behind = gateway_behind_proxy(
            platform, start_gateway, "DATABASE_URL", HEARTBEAT_SECONDS="0.5", BUFFER_EVENTS="64"
        )
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            metadata = key(acme.api_keys["paper"])
            await asyncio.to_thread(writer.append, account_id, 900)
            live = await subscribe(channel, metadata, account_id)
            behind_it = await subscribe(channel, metadata, account_id, after=0)
            go_away(proxy)
            beats = len(live.words)
            for _ in range(4):
                await asyncio.to_thread(writer.append, account_id, 50)
                await asyncio.sleep(0.5)
            await live.until(lambda subscriber: len(subscriber.words) >= beats + 3)
            during = len(live.events)
            proxy.resume()
            await live.received(200)
            await behind_it.received(1100)
            return live.sequences, behind_it.sequences, during

    live, behind_it, during = run(scenario())

    assert during == 0, "the database was not away"
    assert live == list(range(901, 1101))
    assert behind_it == list(range(1, 1101))


@either_way
def test_streams_end_when_their_callers_could_not_be_verified_for_too_long(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID, writer: Writer, go_away: Away
) -> None:
    """Whoever was revoked meanwhile would otherwise read on for as long as the database is away."""

    async def scenario() -> None:
        behind = gateway_behind_proxy(
            platform, start_gateway, "DATABASE_URL", HEARTBEAT_SECONDS="0.5", UNVERIFIED_SECONDS="6"
        )
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            metadata = key(acme.api_keys["paper"])
            subscriber = await subscribe(channel, metadata, account_id, after=0)
            await subscriber.wait_for("replay_complete")
            go_away(proxy)
            await asyncio.to_thread(writer.append, account_id, 3)
            code, details = await subscriber.ending(seconds=30)  # as long as it takes by default
            assert (code, subscriber.sequences) == (Code.UNAVAILABLE, [])
            assert "cannot be verified" in details and "Resume" in details
            assert len(subscriber.words) > 3, "it went on for a while, with heartbeats"
            assert await outcome(gateway, metadata, account_id) == Code.UNAVAILABLE
            await eventually_async(lambda: readiness(gateway) == 503)

            proxy.resume()
            await eventually_async(lambda: readiness(gateway) == 200)
            await until_streaming(gateway, metadata, account_id)
            resumed = await subscribe(channel, metadata, account_id, after=0)
            await resumed.received(3)
            assert resumed.sequences == [1, 2, 3]

    run(scenario())


def test_whoever_subscribes_while_the_database_is_silent_is_not_kept_waiting_for_ever(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID
) -> None:
    async def scenario() -> tuple[Code, str]:
        behind = gateway_behind_proxy(platform, start_gateway, "DATABASE_URL")
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            proxy.silence()
            metadata = key(acme.api_keys["paper"])
            subscriber = await subscribe(channel, metadata, account_id, established=False)
            return await subscriber.ending(seconds=60)

    code, details = run(scenario())

    assert code == Code.UNAVAILABLE and "Resume" in details


def test_it_stops_in_time_although_the_database_is_silent(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID
) -> None:
    async def scenario() -> tuple[Code, int]:
        behind = gateway_behind_proxy(platform, start_gateway, "DATABASE_URL", HEARTBEAT_SECONDS="0.5")
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(acme.api_keys["paper"]), account_id)
            proxy.silence()
            await asyncio.sleep(3)  # until everything that looks at the database regularly is waiting for it
            gateway.send(signal.SIGTERM)
            code, _ = await subscriber.ending()
            return code, await asyncio.to_thread(gateway.process.wait, 15)

    assert run(scenario()) == (Code.UNAVAILABLE, 0)


@either_way
def test_without_redis_streams_begin_and_events_come(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID, writer: Writer, go_away: Away
) -> None:
    async def scenario() -> list[int]:
        behind = gateway_behind_proxy(platform, start_gateway, "REDIS_URL", HEARTBEAT_SECONDS="0.5")
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            metadata = key(acme.api_keys["paper"])
            before = await subscribe(channel, metadata, account_id)
            go_away(proxy)
            after = await subscribe(channel, metadata, account_id)
            await asyncio.to_thread(writer.append, account_id, 3)
            await after.received(3)
            await before.received(3)
            assert after.sequences == [1, 2, 3]
            return before.sequences

    assert run(scenario()) == [1, 2, 3]


def readiness(gateway: Gateway) -> int:
    return requests.get(f"{gateway.events_url}/health/ready", timeout=60).status_code


async def until_streaming(gateway: Gateway, metadata, account_id: UUID) -> None:
    async with asyncio.timeout(10):
        while await outcome(gateway, metadata, account_id) != "streaming":
            await asyncio.sleep(0.1)
