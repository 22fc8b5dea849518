"""Where a stream begins: resumed after a sequence, live, or refused."""

import asyncio
from uuid import UUID

import grpc
import pytest

from tip_testing.identity_fixtures import Organization
from trading_proto import trading_pb2

from .gateway_process import Gateway
from .log_writer import Writer
from .subscribers import ALL_TYPES, BROKER_ORDER, connected, key, outcome, run, subscribe


def test_a_resumed_stream_replays_says_so_and_goes_on(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 700)

    async def scenario() -> tuple[list[int], list[int]]:
        async with connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(acme.api_keys["paper"]), account_id, after=100)
            word = await subscriber.wait_for("replay_complete")
            assert word.sequence == 700 and len(subscriber.events) == 600
            await asyncio.to_thread(writer.append, account_id, 300)
            await subscriber.received(900)
            return subscriber.sequences, [message.WhichOneof("payload") for message in subscriber.words]

    sequences, words = run(scenario())

    assert sequences == list(range(101, 1001))
    assert words.count("replay_complete") == 1


@pytest.mark.parametrize("missed", [0, 3])
def test_resuming_at_the_end_completes_at_once(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer, missed: int
) -> None:
    if missed:
        writer.append(account_id, missed)

    async def scenario() -> trading_pb2.TradingEvent:
        async with connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(acme.api_keys["paper"]), account_id, after=missed)
            return await subscriber.next()

    word = run(scenario())

    assert (word.WhichOneof("payload"), word.sequence) == ("replay_complete", missed)


def test_without_resume_it_begins_now(gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer) -> None:
    writer.append(account_id, 5)

    async def scenario() -> tuple[list[int], list[str]]:
        async with connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(acme.api_keys["paper"]), account_id)
            await asyncio.to_thread(writer.append, account_id, 2)
            await subscriber.received(2)
            return subscriber.sequences, [message.WhichOneof("payload") for message in subscriber.words]

    sequences, words = run(scenario())

    assert sequences == [6, 7] and "replay_complete" not in words


def test_a_stream_that_replays_nothing_begins_by_saying_where_it_begins(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    """So that one that is cut before its first event can be resumed without a gap."""
    writer.append(account_id, 3)

    async def listen() -> trading_pb2.TradingEvent:
        async with connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(acme.api_keys["paper"]), account_id, types=[BROKER_ORDER])
            return await subscriber.next()

    first = run(listen())

    assert (first.sequence, first.heartbeat.latest_sequence, first.type) == (3, 3, 0)


@pytest.mark.parametrize(
    ("types", "after", "expected"),
    [
        ([], None, grpc.StatusCode.INVALID_ARGUMENT),
        ([0], None, grpc.StatusCode.INVALID_ARGUMENT),
        ([1, 99], None, grpc.StatusCode.INVALID_ARGUMENT),
        ([1], 4, grpc.StatusCode.OUT_OF_RANGE),
        ([1], 2**64 - 1, grpc.StatusCode.OUT_OF_RANGE),
        ([1], 3, "streaming"),
        ([1], 0, "streaming"),
    ],
)
def test_what_cannot_be_subscribed_to_is_refused(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer, types: list[int], after: int | None,
    expected: object,
) -> None:  # fmt: skip
    writer.append(account_id, 3)

    assert run(outcome(gateway, key(acme.api_keys["paper"]), account_id, types=types, after=after)) == expected


def test_what_is_older_than_retention_is_refused_and_not_skipped(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 3, age="8 days")
    writer.append(account_id, 2, age="6 days")
    metadata = key(acme.api_keys["paper"])

    assert run(outcome(gateway, metadata, account_id, after=2)) == grpc.StatusCode.OUT_OF_RANGE
    assert run(outcome(gateway, metadata, account_id, after=3)) == "streaming"
    assert run(outcome(gateway, metadata, account_id, after=5)) == "streaming"


def test_bytes_that_are_no_request_are_refused_politely(gateway: Gateway, acme: Organization) -> None:
    async def scenario() -> grpc.StatusCode:
        async with connected(gateway.target) as channel:
            method = channel.unary_stream("/trading.TradingService/SubscribeEvents")
            return await method(b"\xff\xff\xff", metadata=key(acme.api_keys["paper"])).code()

    assert run(scenario()) == grpc.StatusCode.INVALID_ARGUMENT
    assert len(ALL_TYPES) == 7
