"""The log epoch on the stream: in every message, in a resume, and over for every stream when a new one begins."""

import json
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
import requests

from chassis import db
from stream_gateway.fairness import WriteScheduler
from stream_gateway.hub import Hub, Stream
from stream_gateway.log import Log
from stream_gateway.model import EpochEnded
from tip_testing.identity_fixtures import Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway
from .log_writer import Writer
from .sse_client import events, opened
from .subscribers import connected, key, outcome, run, subscribe

OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE


def current_epoch(writer: Writer) -> str:
    return str(writer.execute("SELECT epoch FROM intents_api.log_epoch").scalar_one())


def begin_epoch(writer: Writer) -> None:
    """As an operator does."""
    writer.execute(
        "INSERT INTO intents.log_epoch (number, reason, database_identity) "
        "SELECT max(number) + 1, 'OPERATOR', intents.database_identity() FROM intents.log_epoch"
    )


def test_every_message_names_the_epoch(gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer) -> None:
    writer.append(account_id, 2)

    async def scenario() -> set[tuple[str, str]]:
        async with connected(gateway.target) as channel:
            resumed = await subscribe(channel, key(acme.api_keys["paper"]), account_id, after=1)
            await resumed.received(1)
            await resumed.wait_for("replay_complete")
            await resumed.wait_for("heartbeat")
            return {
                (str(message.WhichOneof("payload")), message.epoch) for message in (*resumed.events, *resumed.words)
            }

    expected = {(name, current_epoch(writer)) for name in ("broker_order", "replay_complete", "heartbeat")}
    assert run(scenario()) == expected


def test_a_stream_resumes_in_its_epoch_and_in_no_other(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 3)
    metadata = key(acme.api_keys["paper"])

    async def scenario() -> None:
        for epoch in (None, "", current_epoch(writer)):
            assert await outcome(gateway, metadata, account_id, after=2, epoch=epoch) == "streaming"
        for epoch in (str(uuid4()), "not an epoch"):
            for after in (0, 3, None):
                assert await outcome(gateway, metadata, account_id, after=after, epoch=epoch) is OUT_OF_RANGE
        assert await outcome(gateway, metadata, account_id, after=4) is OUT_OF_RANGE

    run(scenario())


def test_the_id_of_a_server_sent_event_resumes_in_its_epoch(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 3)
    api_key, epoch = acme.api_keys["paper"], current_epoch(writer)
    with opened(gateway, api_key, account_id, "?resume_after_sequence=0") as answer:
        received = next(events(answer))["id"]
    assert received == f"1@{epoch}"

    for header in (received, "1"):
        with opened(gateway, api_key, account_id, f"?resume_epoch={uuid4()}", Last_Event_ID=header) as answer:
            assert next(events(answer))["id"] == f"2@{epoch}"  # what the address says is older and does not count
    with opened(gateway, api_key, account_id, f"?resume_after_sequence=2&resume_epoch={epoch}") as answer:
        assert next(events(answer))["id"] == f"3@{epoch}"


@pytest.mark.parametrize(
    ("query", "header"),
    [("", f"1@{uuid4()}"), (f"?resume_after_sequence=1&resume_epoch={uuid4()}", "")],
    ids=["by header", "by query"],
)
def test_a_position_of_another_epoch_is_a_problem_that_says_what_to_do(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer, query: str, header: str
) -> None:
    writer.append(account_id, 3)

    with opened(gateway, acme.api_keys["paper"], account_id, query, Last_Event_ID=header) as answer:
        problem = answer.json()

    assert (answer.status_code, problem["code"]) == (400, "out_of_range")
    assert "restored" in problem["detail"] and "without resuming" in problem["detail"]


def test_a_new_epoch_ends_every_open_stream_also_where_nothing_happens(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 2)
    api_key = acme.api_keys["paper"]

    async def scenario() -> None:
        async with connected(gateway.target) as channel:
            subscriber = await subscribe(channel, key(api_key), account_id)
            begin_epoch(writer)
            code, detail = await subscriber.ending()
            assert code is OUT_OF_RANGE and "restored" in detail
            fresh = await subscribe(channel, key(api_key), account_id, after=0)
            assert {event.epoch for event in await fresh.received(2)} == {current_epoch(writer)}

    with opened(gateway, api_key, account_id) as answer:
        reading = events(answer)
        assert next(reading)["event"] == "heartbeat"
        run(scenario())
        last = [event for event in reading if event["event"] != "heartbeat"]

    assert [event["event"] for event in last] == ["end"]
    assert json.loads(last[0]["data"])["code"] == "epoch_ended"
    assert requests.get(f"{gateway.events_url}/health/ready", timeout=60).status_code == 200


def test_a_stream_that_is_behind_reads_no_page_of_another_epoch(
    platform: Platform, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 3)
    engine = db.engine(platform.database_url("stream_gateway"), pool_size=2, name="test")
    nobody: Any = None

    async def read(epoch: str) -> tuple[list[int], Stream]:
        log, hub = Log(engine), Hub(account_id, account_id, epoch, 3, 64, WriteScheduler())
        stream = Stream(hub, nobody, frozenset(), 0, None, "grpc")
        hub.streams.add(stream)
        _, entries = await log.page(hub, 0)
        log.close()
        return [entry.sequence for entry in entries], stream

    sequences, current = run(read(current_epoch(writer)))
    nothing, over = run(read("an epoch that is over"))
    engine.dispose()

    assert sequences == [1, 2, 3] and current.ending is None
    assert nothing == [] and isinstance(over.ending, EpochEnded) and over.cut
