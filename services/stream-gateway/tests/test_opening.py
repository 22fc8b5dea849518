"""Opening a stream: invented credentials cost little and delay nobody, and an organization has only so many streams."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis import keys
from stream_gateway.admission import STRANGERS_PENDING
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway, StartGateway, gateway_behind_proxy
from .log_writer import Writer
from .subscribers import bearer, connected, key, outcome, run, subscribe

Code = grpc.StatusCode


def test_a_known_caller_opens_a_stream_while_invented_keys_wait_for_the_database(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    """The table of keys is locked, so that looking one up takes a second."""
    gateway = start_gateway()
    known = bearer(acme.tokens["member"])

    async def scenario() -> int:
        async with connected(gateway.target) as channel, connected(gateway.target) as another:
            await subscribe(channel, known, account_id)
            with writer.locked("identity.api_key"):
                invented = [
                    await subscribe(another, key(keys.generate("paper")), account_id, established=False)
                    for _ in range(50)
                ]
                ended = [asyncio.create_task(subscriber.call.code()) for subscriber in invented]
                await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
                await subscribe(channel, known, account_id)
                answered = sum(task.done() for task in ended)
            await asyncio.gather(*ended)
            return answered

    assert run(scenario()) < 25


def test_an_address_that_was_refused_too_often_is_refused_without_a_read(
    start_gateway: StartGateway, platform: Platform, acme: Organization, account_id: UUID
) -> None:
    """And whoever was let in before comes in again from the same address."""
    address = ("x-forwarded-for", str(uuid4()))
    known = (*key(acme.api_keys["paper"]), address)

    async def scenario() -> tuple[list[Any], int, Any]:
        limits = {"RATE_LIMIT_PER_MINUTE": "10", "TRUSTED_PROXIES": "1"}
        behind = gateway_behind_proxy(platform, start_gateway, "DATABASE_URL", **limits)
        async with behind as (gateway, proxy):
            assert await outcome(gateway, known, account_id) == "streaming"
            proxy.received.clear()
            invented = [(*key(keys.generate("paper")), address) for _ in range(40)]
            answers = [await outcome(gateway, metadata, account_id) for metadata in invented]
            reads = proxy.received.count(b"key_digest")
            return answers, reads, await outcome(gateway, known, account_id)

    answers, reads, again = run(scenario())

    assert answers[0] == Code.UNAUTHENTICATED and answers[-1] == Code.RESOURCE_EXHAUSTED
    assert reads <= 25, "each was looked up"
    assert again == "streaming"


def test_an_organization_has_only_so_many_streams_whoever_opens_them(
    start_gateway: StartGateway, platform: Platform, identity: IdentityFixtures, acme: Organization, account_id: UUID
) -> None:
    gateway = start_gateway(STREAMS_PER_ORGANIZATION="3")
    other = identity.organization()
    with platform.admin() as admin:
        others_account = add_account(admin, other.id)

    async def scenario() -> list[object]:
        async with connected(gateway.target) as channel:
            callers = [key(acme.api_keys["paper"]), bearer(acme.tokens["member"]), bearer(acme.tokens["admin"])]
            subscribers = [await subscribe(channel, caller, account_id) for caller in callers]
            answers = [
                await outcome(gateway, bearer(acme.tokens["read_only"]), account_id),
                await asyncio.to_thread(refusal, gateway, acme.api_keys["paper_read_only"], account_id),
                await outcome(gateway, key(other.api_keys["paper"]), others_account),
            ]
            subscribers[0].call.cancel()
            async with asyncio.timeout(30):
                while await outcome(gateway, bearer(acme.tokens["read_only"]), account_id) != "streaming":
                    await asyncio.sleep(0.05)
            return answers

    assert run(scenario()) == [Code.RESOURCE_EXHAUSTED, (429, "too_many_streams", True), "streaming"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_crowd_that_waits_to_be_let_in_keeps_out_neither_another_tenant_nor_a_health_check(
    start_gateway: StartGateway,
    platform: Platform,
    identity: IdentityFixtures,
    acme: Organization,
    account_id: UUID,
    writer: Writer,
    is_known: bool,
) -> None:
    """More of them than the process may have streams; the table of keys is locked, and so none is let in."""
    gateway = start_gateway(STREAMS_PER_PROCESS="20")
    other = identity.organization()
    with platform.admin() as admin:
        others_account = add_account(admin, other.id)
    crowds = key(acme.api_keys["paper"])

    async def scenario() -> tuple[object, object]:
        async with connected(gateway.target) as channel:
            if is_known:
                await subscribe(channel, crowds, account_id)
            with writer.locked("identity.api_key"):
                crowd = [await subscribe(channel, crowds, account_id, established=False) for _ in range(130)]
                ended = [asyncio.create_task(subscriber.call.code()) for subscriber in crowd]
                await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
                answers = await outcome(gateway, bearer(other.tokens["member"]), others_account), await probe(gateway)
            for subscriber in crowd:
                subscriber.call.cancel()
            await asyncio.gather(*ended)
            return answers

    assert run(scenario()) == ("streaming", SERVING)


def test_calls_whose_message_never_comes_count_for_their_address_alone(
    start_gateway: StartGateway, acme: Organization, account_id: UUID
) -> None:
    gateway = start_gateway(STREAMS_PER_PROCESS="20", TRUSTED_PROXIES="1")
    beyond = 20

    async def scenario() -> tuple[set[object], object, object]:
        async with connected(gateway.target) as channel:
            method = channel.stream_stream("/trading.TradingService/SubscribeEvents")
            somewhere = (("x-forwarded-for", "203.0.113.1"),)
            calls = [method(metadata=somewhere) for _ in range(STRANGERS_PENDING + beyond)]
            ended = [asyncio.create_task(call.code()) for call in calls]
            async with asyncio.timeout(20):
                while sum(task.done() for task in ended) < beyond:
                    await asyncio.wait([task for task in ended if not task.done()], return_when=asyncio.FIRST_COMPLETED)
            refused = {task.result() for task in ended if task.done()}
            another = (*key(acme.api_keys["paper"]), ("x-forwarded-for", "203.0.113.2"))
            answers = refused, await outcome(gateway, another, account_id), await probe(gateway)
            for call in calls:
                call.cancel()
            await asyncio.gather(*ended)
            return answers

    assert run(scenario()) == ({Code.RESOURCE_EXHAUSTED}, "streaming", SERVING)


def test_a_stream_that_waits_to_be_let_in_counts_as_an_open_one_on_both_transports(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    gateway = start_gateway(STREAMS_PER_ORGANIZATION="3")
    api_key = acme.api_keys["paper"]

    async def scenario() -> list[object]:
        async with connected(gateway.target) as channel:
            await subscribe(channel, key(api_key), account_id)
            with writer.locked("identity.api_key"):
                for _ in range(2):
                    await subscribe(channel, key(api_key), account_id, established=False)
                async with asyncio.timeout(20):
                    while gateway.metric("tip_stream_pending") < 2:
                        await asyncio.sleep(0.01)
                return [
                    await outcome(gateway, key(api_key), account_id),
                    await asyncio.to_thread(refusal, gateway, api_key, account_id),
                ]

    assert run(scenario()) == [Code.RESOURCE_EXHAUSTED, (429, "too_many_streams", True)]


SERVING = health_pb2.HealthCheckResponse.SERVING


async def probe(gateway: Gateway) -> object:
    """What a health check is answered: its status, or the code that refuses it."""
    async with connected(gateway.target) as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        except grpc.aio.AioRpcError as refused:
            return refused.code()
        return answer.status


def refusal(gateway: Gateway, api_key: str, account_id: UUID) -> tuple[int, str, bool]:
    address = f"{gateway.events_url}/v1/accounts/{account_id}/events"
    answer = requests.get(address, headers={"x-api-key": api_key}, timeout=60)
    return answer.status_code, answer.json()["code"], "Retry-After" in answer.headers
