"""Whoever waits for the log of an account is told at once that it has grown."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from kombu import Consumer, Queue

from chassis import queues
from chassis.hints import EXCHANGE
from intents.brokers.protocol import Order, OrderStatus
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.verdicts import Rejected
from intents.execution.recorder import Recorder
from intents.execution.stale import cancel_stale
from intents.execution.store import claim
from tip_testing.commands import create, limit
from tip_testing.waiting import eventually

from .broker_side import accepted
from .conftest import Desk
from .test_feed_consumer import drain, tell

Heard = Callable[[int], bool]


@pytest.fixture
def heard(desk: Desk) -> Iterator[Heard]:
    """Whether a hint about the desk's account was told with this sequence, or is within ten seconds."""
    told: list[int | None] = []
    mine = Queue(f"test-{desk.account_id}", EXCHANGE, durable=False, auto_delete=True)
    with (
        queues.connection(desk.platform.environment("intents")["REDIS_URL"]) as opened,
        Consumer(opened, [mine], callbacks=[lambda said, _: told.append(said.get(str(desk.account_id)))], no_ack=True),
    ):
        with suppress(TimeoutError):
            opened.drain_events(timeout=0.1)  # from here on it is subscribed

        def wait(sequence: int) -> bool:
            def was_received() -> bool:
                if sequence not in told:
                    with suppress(TimeoutError):
                        opened.drain_events(timeout=0.1)
                return sequence in told

            return eventually(was_received, 10)

        yield wait


def test_a_submit_is_told(desk: Desk, heard: Heard) -> None:
    assert desk.created(create())["sequence"] == 1
    assert heard(1)


def test_an_atomic_batch_is_told_with_its_last_action(desk: Desk, heard: Heard) -> None:
    body = {"commands": [create()["command"]] * 3, "atomic": True}
    assert desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers).status_code == 200
    assert heard(3)


def test_what_controls_tell_is_told(desk: Desk, heard: Heard) -> None:
    about = {"account_id": str(desk.account_id), "control": "account_switch"}
    tell(desk, "controls", "control.updated", **about, version=1, deleted=False)
    drain(desk)
    assert heard(1)


def test_the_cancel_of_a_stale_order_is_told(desk: Desk, heard: Heard) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    desk.execute("UPDATE intents.intent SET accepted_at = now() - interval '1 hour' WHERE account_id = :account_id")
    desk.execute(
        "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
        "VALUES (:account_id, 'AAPL', :organization_id, 1000)",
        organization_id=desk.organization.id,
    )
    assert cancel_stale(desk.deps) == 1
    assert heard(3)


def test_what_the_executor_records_is_told_with_its_last_event(desk: Desk, heard: Heard) -> None:
    for _ in range(2):
        desk.created(create())
    answers = [
        DispatchResult(command, Rejected("REJECTED", "no"))
        for command in claim(desk.deps.connections.autocommit(), 100, 15)
        if command.account_id == desk.account_id
    ]
    moment = datetime.now(UTC)
    order = Order(
        "by-hand", "b-9", OrderStatus.WORKING, "AAPL", "BUY", "Market", Decimal(1), Decimal(0), None, moment, moment
    )
    recorder = Recorder(desk.deps.connections, publish_head=desk.deps.hints.publish)
    recorder.start()
    for one in (*answers, BrokerReport(desk.account_id, order, moment)):
        recorder.put(one)
    recorder.close()

    last = desk.rows("account_head")[0]["last_sequence"]
    assert len(answers) == 2 and last >= 5
    assert heard(last)
