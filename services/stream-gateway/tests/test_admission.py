"""Opening a stream: invented credentials cost little and delay nobody, and an organization has only so many streams."""

import asyncio
import threading
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
import requests

from chassis import keys, problems
from chassis.access import Presented
from chassis.principals import Kind, Principal
from stream_gateway.admission import Admission, Refusals
from stream_gateway.callers import Caller
from tip_local.platform_plugin import Platform
from tip_local.world import Organization, World, add_account

from .conftest import (
    Gateway,
    StartGateway,
    Writer,
    bearer,
    connected,
    gateway_behind_proxy,
    key,
    outcome,
    run,
    subscribe,
)

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


def test_an_address_that_was_refused_too_often_is_refused_without_asking_the_database(
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
            proxy.asked.clear()
            invented = [(*key(keys.generate("paper")), address) for _ in range(40)]
            answers = [await outcome(gateway, metadata, account_id) for metadata in invented]
            asked = proxy.asked.count(b"key_digest")
            return answers, asked, await outcome(gateway, known, account_id)

    answers, asked, again = run(scenario())

    assert answers[0] == Code.UNAUTHENTICATED and answers[-1] == Code.RESOURCE_EXHAUSTED
    assert asked <= 25, "each was looked up"
    assert again == "streaming"


def test_an_organization_has_only_so_many_streams_whoever_opens_them(
    start_gateway: StartGateway, platform: Platform, world: World, acme: Organization, account_id: UUID
) -> None:
    gateway = start_gateway(STREAMS_PER_ORGANIZATION="3")
    other = world.organization()
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


def refusal(gateway: Gateway, api_key: str, account_id: UUID) -> tuple[int, str, bool]:
    address = f"{gateway.events_url}/v1/accounts/{account_id}/events"
    answer = requests.get(address, headers={"x-api-key": api_key}, timeout=20)
    return answer.status_code, answer.json()["code"], "Retry-After" in answer.headers


def presented(value: str, address: str = "203.0.113.1") -> Presented:
    return Presented((("key", value),), None, address)


def admitting(organization_id: UUID) -> Any:
    nothing: Any = None
    caller = Caller(Principal(Kind.API_KEY, str(uuid4()), organization_id))
    return lambda: (caller, nothing, nothing)


def refusing() -> Any:
    raise problems.unauthenticated()


def test_strangers_wait_in_turn_by_address() -> None:
    release = threading.Event()
    begun: list[str] = []

    async def scenario() -> None:
        admission = Admission(refusals_per_minute=1000)

        def stranger(address: str) -> Any:
            def admit() -> Any:
                begun.append(address)
                release.wait()
                refusing()

            return admission.admit(presented(keys.generate("paper"), address), admit)

        crowd = [asyncio.create_task(stranger("203.0.113.1")) for _ in range(100)]
        await asyncio.sleep(0)
        single = asyncio.create_task(stranger("203.0.113.2"))
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*crowd, single, return_exceptions=True)
        admission.close()

    asyncio.run(scenario())

    assert begun.index("203.0.113.2") <= 3


def test_a_credential_that_many_streams_open_with_at_once_is_a_stranger_once() -> None:
    async def scenario() -> int:
        admission = Admission(refusals_per_minute=1000)
        threads: set[str] = set()
        let_in = admitting(uuid4())

        def admit() -> Any:
            threads.add(threading.current_thread().name)
            return let_in()

        shown = presented(keys.generate("paper"))
        await asyncio.gather(*(admission.admit(shown, admit) for _ in range(50)))
        admission.close()
        return sum(name.startswith("admit-unknown") for name in threads)

    assert asyncio.run(scenario()) == 1


def test_a_credential_that_is_refused_is_a_stranger_again() -> None:
    async def scenario() -> None:
        admission = Admission(refusals_per_minute=1)
        shown = presented(keys.generate("paper"))
        await admission.admit(shown, admitting(uuid4()))
        for status in (401, 429):
            with pytest.raises(problems.Problem) as refused:
                await admission.admit(shown, refusing)
            assert refused.value.status == status
        admission.close()

    asyncio.run(scenario())


def test_a_refusal_counts_for_its_address_alone() -> None:
    refusals = Refusals(per_minute=2)
    for _ in range(2):
        refusals.check("203.0.113.1")
        refusals.count("203.0.113.1")

    refusals.check("203.0.113.2")
    with pytest.raises(problems.Problem) as refused:
        refusals.check("203.0.113.1")

    assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) >= 1
