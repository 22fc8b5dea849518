"""How streams end: by their caller's fault or ours, and always so that they can be resumed."""

import asyncio
import signal
import time
from uuid import UUID

import grpc
import pytest

from chassis import keys
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway, StartGateway
from .log_writer import Writer
from .subscribers import Metadata, Subscriber, bearer, connected, key, outcome, run, subscribe

Code = grpc.StatusCode
FAT = {"symbol": "AAPL", "reason": "x" * 3000}
"""Enough of these, and no buffer between the gateway and a subscriber is large enough."""


async def ending_after(gateway: Gateway, metadata: Metadata, account_id: UUID, act) -> tuple[Code, float]:
    """With which status the stream ends after this was done, and how long it took."""
    async with connected(gateway.target) as channel:
        subscriber = await subscribe(channel, metadata, account_id)
        await asyncio.to_thread(act)
        began = time.monotonic()
        code, _ = await subscriber.ending(seconds=60)
        return code, time.monotonic() - began


def test_a_disabled_key_ends_its_streams_within_five_seconds(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    doomed, spared = identity.key(acme.id, "paper"), acme.api_keys["paper"]

    async def scenario() -> tuple[tuple[Code, float], list[int]]:
        async with connected(gateway.target) as channel:
            healthy = await subscribe(channel, key(spared), account_id)
            sql = "UPDATE identity.api_key SET disabled = true WHERE prefix = :prefix"
            ended = await ending_after(
                gateway, key(doomed), account_id, lambda: writer.execute(sql, prefix=keys.prefix(doomed))
            )
            await asyncio.to_thread(writer.append, account_id)
            await healthy.received(1)
            return ended, healthy.sequences

    (code, took), sequences = run(scenario())

    assert code == Code.UNAUTHENTICATED and took <= 5
    assert sequences == [1]
    assert run(outcome(gateway, key(doomed), account_id)) == Code.UNAUTHENTICATED


TAKEN_AWAY = {
    "permission": (
        "UPDATE identity.api_key SET permissions = '{control:read}' WHERE prefix = :prefix",
        Code.PERMISSION_DENIED,
    ),
    "role": (
        "UPDATE identity.membership SET removed_at = now() WHERE organization_id = :organization",
        Code.PERMISSION_DENIED,
    ),
    "organization": (
        "UPDATE identity.organization SET disabled = true WHERE id = :organization",
        Code.UNAUTHENTICATED,
    ),
    "account": ("UPDATE accounts.account SET deleted_at = now() WHERE id = :account", Code.NOT_FOUND),
}


@pytest.mark.parametrize("what", TAKEN_AWAY)
def test_what_is_taken_away_ends_the_stream(
    gateway: Gateway, platform: Platform, identity: IdentityFixtures, writer: Writer, what: str
) -> None:
    statement, expected = TAKEN_AWAY[what]
    organization = identity.organization()
    with platform.admin() as admin:
        account_id = add_account(admin, organization.id)
    metadata = bearer(organization.tokens["member"]) if what == "role" else key(organization.api_keys["paper"])
    names = {
        "prefix": keys.prefix(organization.api_keys["paper"]),
        "organization": organization.id,
        "account": account_id,
    }
    values = {name: value for name, value in names.items() if f":{name}" in statement}

    code, took = run(ending_after(gateway, metadata, account_id, lambda: writer.execute(statement, **values)))

    assert code == expected and took <= 5


def test_an_expired_token_ends_its_stream_and_begins_no_other(
    gateway: Gateway, platform: Platform, acme: Organization, account_id: UUID
) -> None:
    identity = IdentityFixtures(platform.administrator_environment("identity"), token_lifetime_s=2)
    try:
        token = identity.tokens(acme.external_id)["member"]
        code, took = run(ending_after(gateway, bearer(token), account_id, lambda: None))

        assert code == Code.UNAUTHENTICATED and took <= 2 + 5
        assert run(outcome(gateway, bearer(token), account_id)) == Code.UNAUTHENTICATED
    finally:
        identity.close()


def test_a_slow_subscriber_loses_nothing_and_slows_nobody(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    """It falls behind what is kept in memory, and reads the log on its own."""
    gateway = start_gateway(BUFFER_EVENTS="64", STUCK_SECONDS="60")

    async def scenario() -> tuple[Subscriber, Subscriber]:
        async with connected(gateway.target) as channel, connected(gateway.target) as another:
            metadata = key(acme.api_keys["paper"])
            slow, quick = await subscribe(channel, metadata, account_id), await subscribe(another, metadata, account_id)
            for _ in range(10):
                await asyncio.to_thread(writer.append, account_id, 250, payload=FAT)
                await quick.received(len(quick.events) + 250)  # while the other has not read anything yet
            await slow.received(2500, seconds=60)
            return slow, quick

    slow, quick = run(scenario())

    assert quick.sequences == slow.sequences == list(range(1, 2501))
    assert gateway.metric('tip_stream_log_reads_total{why="behind"}') >= 1


def test_a_stuck_subscriber_is_cut_and_can_resume(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    gateway = start_gateway(STUCK_SECONDS="3", BUFFER_EVENTS="64")
    total = 3000

    async def scenario() -> tuple[tuple[Code, str], list[int], list[int]]:
        async with connected(gateway.target) as channel:
            metadata = key(acme.api_keys["paper"])
            stuck = await subscribe(channel, metadata, account_id)
            for _ in range(6):
                await asyncio.to_thread(writer.append, account_id, total // 6, payload=FAT)
            async with asyncio.timeout(30):
                while not gateway.metric('tip_stream_ended_total{reason="stuck"'):
                    await asyncio.sleep(0.1)
            ended = await stuck.ending()
            resumed = await subscribe(channel, metadata, account_id, after=stuck.sequences[-1])
            await resumed.wait_for("replay_complete", seconds=60)
            return ended, stuck.sequences, resumed.sequences

    (code, details), before, after = run(scenario())

    assert code == Code.RESOURCE_EXHAUSTED and "Resume" in details
    assert before + after == list(range(1, total + 1))


def test_whoever_does_not_read_gets_no_other_streams_instead(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    """A stream that was cut is there until its end has been read. If it did not count, one could have them all."""
    gateway = start_gateway(STUCK_SECONDS="1", STREAMS_PER_PRINCIPAL="2")
    metadata = key(acme.api_keys["paper"])

    async def scenario() -> None:
        async with connected(gateway.target) as channel:
            stuck = [await subscribe(channel, metadata, account_id) for _ in range(2)]
            for _ in range(6):
                await asyncio.to_thread(writer.append, account_id, 500, payload=FAT)
            async with asyncio.timeout(30):
                while gateway.metric('tip_stream_ended_total{reason="stuck"') < 2:
                    await asyncio.sleep(0.1)
            assert await outcome(gateway, metadata, account_id) == Code.RESOURCE_EXHAUSTED
            endings = [await subscriber.ending(30) for subscriber in stuck]
            assert {code for code, _ in endings} == {Code.RESOURCE_EXHAUSTED}
            async with asyncio.timeout(30):
                while await outcome(gateway, metadata, account_id) != "streaming":
                    await asyncio.sleep(0.1)

    run(scenario())


def test_draining_finishes_what_is_buffered_and_says_unavailable(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    gateway, other = start_gateway(), start_gateway()
    small_windows = ("grpc.http2.bdp_probe", 0)

    async def scenario() -> tuple[list[tuple[Code, str]], list[list[int]], float, list[int]]:
        async with connected(gateway.target, small_windows) as channel, connected(other.target) as another:
            metadata = key(acme.api_keys["paper"])
            subscribers = [await subscribe(channel, metadata, account_id) for _ in range(5)]
            await asyncio.to_thread(writer.append, account_id, 400, payload=FAT)
            await asyncio.gather(*(subscriber.received(5) for subscriber in subscribers))
            began = time.monotonic()
            gateway.send(signal.SIGTERM)
            await asyncio.sleep(0.5)  # nobody reads, so most of it has not been written yet
            endings = await asyncio.gather(*(subscriber.ending() for subscriber in subscribers))
            took = time.monotonic() - began
            resumed = await subscribe(another, metadata, account_id, after=subscribers[0].sequences[-1])
            await asyncio.to_thread(writer.append, account_id, 3)
            await resumed.received(3)
            return endings, [subscriber.sequences for subscriber in subscribers], took, resumed.sequences

    endings, logs, took, resumed = run(scenario())

    assert {code for code, _ in endings} == {Code.UNAVAILABLE}
    assert all(log == list(range(1, 401)) for log in logs)
    assert took < 8
    assert resumed == [401, 402, 403]
    assert gateway.process.wait(60) == 0


def test_draining_ends_in_time_although_somebody_does_not_read(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    gateway = start_gateway(STUCK_SECONDS="60", DRAIN_SECONDS="1")

    async def scenario() -> float:
        async with connected(gateway.target) as channel:
            await subscribe(channel, key(acme.api_keys["paper"]), account_id)
            for _ in range(8):
                await asyncio.to_thread(writer.append, account_id, 500, payload=FAT)
            await asyncio.sleep(0.5)
            began = time.monotonic()
            gateway.send(signal.SIGTERM)
            await asyncio.to_thread(gateway.process.wait, 20)
            return time.monotonic() - began

    assert run(scenario()) < 10
    assert gateway.process.returncode() == 0


def test_streams_outlive_a_restart_of_the_database_connections(
    gateway: Gateway, platform: Platform, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    async def scenario() -> list[int]:
        async with connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(acme.api_keys["paper"]), account_id)
            for number in range(1, 4):
                writer.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stream-gateway'"
                )
                await asyncio.to_thread(writer.append, account_id)
                await subscriber.received(number)
            return subscriber.sequences

    assert run(scenario()) == [1, 2, 3]


def test_no_key_and_no_token_is_in_the_log(gateway: Gateway, acme: Organization) -> None:
    """After everything above."""
    assert "started" in gateway.log
    for secret in (*acme.api_keys.values(), *acme.tokens.values()):
        assert secret not in gateway.log
