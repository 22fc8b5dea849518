"""Whatever appends to the log of an account publishes a hint with its new head."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from kombu import Consumer, Queue

from chassis import queues
from chassis.hints import EXCHANGE
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.verdicts import Rejected
from intents.execution.recorder import Recorder
from intents.execution.stale import cancel_stale
from intents.execution.store import claim
from tip_brokers.protocol import Order, OrderStatus
from tip_testing.commands import create, limit
from tip_testing.waiting import eventually

from .broker_side import accepted
from .conftest import Desk
from .test_feed_consumer import drain, publish

Hinted = Callable[[int], bool]


@pytest.fixture
def hinted(desk: Desk) -> Iterator[Hinted]:
    """Whether a hint with this sequence of the desk's account is received."""
    received: list[int | None] = []
    mine = Queue(f"test-{desk.account_id}", EXCHANGE, durable=False, auto_delete=True)
    with (
        queues.connection(desk.platform.environment("intents")["REDIS_URL"]) as opened,
        Consumer(
            opened, [mine], callbacks=[lambda heads, _: received.append(heads.get(str(desk.account_id)))], no_ack=True
        ),
    ):
        with suppress(TimeoutError):
            opened.drain_events(timeout=0.1)  # from here on it is subscribed

        def wait(sequence: int) -> bool:
            def was_received() -> bool:
                if sequence not in received:
                    with suppress(TimeoutError):
                        opened.drain_events(timeout=0.1)
                return sequence in received

            return eventually(was_received)

        yield wait


def test_a_submit_publishes_a_hint(desk: Desk, hinted: Hinted) -> None:
    assert desk.created(create())["sequence"] == 1
    assert hinted(1)


def test_the_hint_of_an_atomic_batch_has_its_last_sequence(desk: Desk, hinted: Hinted) -> None:
    body = {"commands": [create()["command"]] * 3, "atomic": True}
    assert desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers).status_code == 200
    assert hinted(3)


def test_an_event_of_controls_publishes_a_hint(desk: Desk, hinted: Hinted) -> None:
    about = {"account_id": str(desk.account_id), "control": "account_switch"}
    publish(desk, "controls", "control.updated", **about, version=1, deleted=False)
    drain(desk)
    assert hinted(1)


def test_the_cancel_of_a_stale_order_publishes_a_hint(desk: Desk, hinted: Hinted) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    desk.execute("UPDATE intents.intent SET accepted_at = now() - interval '1 hour' WHERE account_id = :account_id")
    desk.execute(
        "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
        "VALUES (:account_id, 'AAPL', :organization_id, 1000)",
        organization_id=desk.organization.id,
    )
    assert cancel_stale(desk.deps) == 1
    assert hinted(3)


def test_the_hint_of_what_the_executor_records_has_its_last_sequence(desk: Desk, hinted: Hinted) -> None:
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
    for given in (*answers, BrokerReport(desk.account_id, order, moment)):
        recorder.put(given)
    recorder.close()

    last = desk.rows("account_head")[0]["last_sequence"]
    assert len(answers) == 2 and last >= 5
    assert hinted(last)
