"""Open streams of an account are counted over all gateways, for whoever could open one."""

import asyncio
import signal
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
import redis
import requests

from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform
from tip_testing.waiting import eventually, eventually_async

from .gateway_process import Gateway, StartGateway, gateway_behind_proxy
from .sse_client import opened
from .subscribers import connected, key, run, subscribe
from .test_callers import HTTP, cases


@pytest.fixture(scope="module")
def other(identity: IdentityFixtures) -> Organization:
    return identity.organization()


def answered(gateway: Gateway, account_id: object, headers: dict[str, str], query: str = "") -> requests.Response:
    address = f"{gateway.events_url}/v1/accounts/{account_id}/events/streams{query}"
    return requests.get(address, headers=headers, timeout=60)


def counted(gateway: Gateway, account_id: object, api_key: str) -> int:
    answer = answered(gateway, account_id, {"x-api-key": api_key})
    assert answer.status_code == 200, answer.text
    found: int = answer.json()["open"]
    return found


def listed_with(gateway: Gateway, account_id: UUID) -> list[bytes]:
    """The gateways that Redis lists and that have a stream of the account."""
    with redis.Redis.from_url(gateway.environment["REDIS_URL"]) as connection:
        names: Any = connection.zrange("tip:streams:gateways", 0, -1)
        return [name for name in names if connection.hexists(name, f"{account_id}:sse")]


def is_listed(gateway: Gateway, name: bytes) -> bool:
    with redis.Redis.from_url(gateway.environment["REDIS_URL"]) as connection:
        return connection.zscore("tip:streams:gateways", name) is not None or bool(connection.exists(name))


def test_streams_of_both_transports_are_counted_until_they_end(
    gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    api_key = acme.api_keys["paper"]
    before = answered(gateway, account_id, {"x-api-key": api_key})
    assert before.json() == {"account_id": str(account_id), "open": 0, "by_transport": {"grpc": 0, "sse": 0}}
    assert before.headers["Cache-Control"] == "no-store"

    async def scenario() -> Any:
        async with connected(gateway.target) as channel:
            await subscribe(channel, key(api_key), account_id)
            with opened(gateway, api_key, account_id), opened(gateway, api_key, account_id):
                await eventually_async(lambda: counted(gateway, account_id, api_key) == 3)
                return answered(gateway, account_id, {"x-api-key": api_key}).json()["by_transport"]

    assert run(scenario()) == {"grpc": 1, "sse": 2}
    eventually(lambda: counted(gateway, account_id, api_key) == 0)


def test_those_of_all_gateways_are_added_and_a_killed_one_is_forgotten(
    gateway: Gateway, start_gateway: StartGateway, acme: Organization, account_id: UUID
) -> None:
    api_key, another = acme.api_keys["paper"], start_gateway()
    with ExitStack() as streams:
        for place in (gateway, another, another):
            streams.enter_context(opened(place, api_key, account_id))
        eventually(lambda: counted(gateway, account_id, api_key) == 3)
        assert counted(another, account_id, api_key) == 3

        another.stop(signal.SIGKILL)
        eventually(lambda: counted(gateway, account_id, api_key) == 1)


def test_redis_keeps_nothing_of_a_gateway_without_streams(
    gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    with opened(gateway, acme.api_keys["paper"], account_id):
        [name] = eventually(lambda: listed_with(gateway, account_id))

    eventually(lambda: not is_listed(gateway, name))


def test_another_account_has_its_own_count(
    platform: Platform, gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    with platform.admin() as connection:
        quiet = add_account(connection, acme.id)
    with opened(gateway, acme.api_keys["paper"], account_id):
        eventually(lambda: counted(gateway, account_id, acme.api_keys["paper"]) == 1)

        assert counted(gateway, quiet, acme.api_keys["paper"]) == 0


def test_whoever_may_open_a_stream_may_count_them_and_nobody_else(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, other: Organization, account_id: UUID
) -> None:
    for name, (metadata, expected) in cases(identity, acme, other, account_id).items():
        assert answered(gateway, account_id, dict(metadata)).status_code == HTTP[expected], name


@pytest.mark.parametrize(
    ("account", "query", "status", "code"),
    [
        ("00000000-0000-4000-8000-000000000000", "", 404, "not_found"),
        ("no-id", "", 400, "bad_id"),
        (None, "?ticket=x", 400, "unknown_query"),
    ],
)
def test_what_makes_no_sense_is_a_problem(
    gateway: Gateway, acme: Organization, account_id: UUID, account: str | None, query: str, status: int, code: str
) -> None:
    answer = answered(gateway, account or account_id, {"x-api-key": acme.api_keys["paper"]}, query)

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_without_redis_nothing_is_counted_and_when_it_is_back_all_of_them(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID
) -> None:
    api_key = acme.api_keys["paper"]

    async def scenario() -> None:
        behind = gateway_behind_proxy(platform, start_gateway, "REDIS_URL")
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            await subscribe(channel, key(api_key), account_id)
            await eventually_async(lambda: found(gateway, (200, 1)))
            proxy.refuse()
            await eventually_async(lambda: found(gateway, (503, None)))
            await subscribe(channel, key(api_key), account_id)
            await eventually_async(lambda: "stream_counts_not_published" in gateway.log)
            proxy.resume()
            await eventually_async(lambda: found(gateway, (200, 2)))

    async def found(gateway: Gateway, expected: tuple[int, int | None]) -> bool:
        """In a thread: the proxy has this event loop."""
        answer = await asyncio.to_thread(answered, gateway, account_id, {"x-api-key": api_key})
        return (answer.status_code, answer.json().get("open")) == expected

    run(scenario())
