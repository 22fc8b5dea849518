"""CANCEL and REPLACE of an order that is filling: they wait for the intent's row and pass, within a request's time."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace as changed
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from sqlalchemy import text
from werkzeug.test import TestResponse

from chassis.fair_queue import Slot
from intents.execution import recorder
from intents.execution.model.inputs import BrokerReport
from intents.store.connections import OpenTransaction
from intents.usecases import deadline
from tip_brokers import Execution, Order
from tip_testing.commands import cancel, limit, replace
from tip_testing.waiting import eventually

from .conftest import Desk
from .filling import Filling, filled_before_every_write, held_row, intent_of, open_order, waiters
from .test_batch import submit as submit_batch
from .test_controls import limits

PATIENT_S = 60
BIGGER = {"Limit": {"quantity": "200000", "limit_price": "99"}}


def bigger(intent_id: Any) -> dict[str, Any]:
    return replace(intent_id, **BIGGER)


COMMANDS = pytest.mark.parametrize("command", [cancel, bigger], ids=["cancel", "replace"])


@pytest.fixture
def order(desk: Desk) -> Order:
    """An order at the broker, too large to be filled by any test."""
    return open_order(desk)


@COMMANDS
def test_a_command_passes_though_its_order_fills_between_every_read_and_write(
    desk: Desk, order: Order, command: Callable[[Any], Any]
) -> None:
    with filled_before_every_write(desk, order):
        answer = desk.submit(command(intent_of(desk, order)))

    assert answer.status_code == 201, answer.json


@COMMANDS
def test_a_command_passes_under_limits_though_its_order_fills_between_every_read_and_write(
    desk: Desk, order: Order, command: Callable[[Any], Any]
) -> None:
    limits(desk, max_orders_per_minute=10)
    with filled_before_every_write(desk, order):
        answer = desk.submit(command(intent_of(desk, order)))

    assert answer.status_code == 201, answer.json


@pytest.mark.parametrize("atomic", [False, True])
@COMMANDS
def test_a_batch_passes_though_its_order_fills_between_every_read_and_write(
    desk: Desk, order: Order, command: Callable[[Any], Any], atomic: bool
) -> None:
    with filled_before_every_write(desk, order):
        answer = submit_batch(desk, command(intent_of(desk, order)), atomic=atomic)

    assert [result["status"] for result in answer.json["results"]] == [201], answer.json


def test_commands_pass_while_orders_fill_as_fast_as_they_can(desk: Desk) -> None:
    orders = [open_order(desk) for _ in range(3)]
    fillings = [Filling(desk, order) for order in orders]
    enough = threading.Event()

    def keep_filling(filling: Filling) -> None:
        while not enough.is_set():
            filling.once()

    with ThreadPoolExecutor(len(fillings)) as writers:
        running = [writers.submit(keep_filling, filling) for filling in fillings]
        try:
            eventually(lambda: all(filling.count > 3 for filling in fillings))
            intents = [intent_of(desk, order) for order in orders]
            answers = [desk.submit(command(intent_id)) for command in (bigger, cancel) for intent_id in intents]
        finally:
            enough.set()
    for writer in running:
        writer.result()

    assert [(answer.status_code, answer.json.get("code")) for answer in answers] == [(201, None)] * 6
    assert desk.get("/verify").json["valid"] is True


@COMMANDS
def test_a_command_waits_longer_for_its_row_than_any_other_statement_would(
    desk: Desk, order: Order, command: Callable[[Any], Any]
) -> None:
    intent_id = intent_of(desk, order)
    with ThreadPoolExecutor(1) as callers, desk.platform.admin() as connection:
        with held_row(desk, intent_id) as tx:
            submitted = callers.submit(desk.submit, command(intent_id))
            eventually(lambda: submitted.done() or waiters(connection) > 0)
            time.sleep(1.5)  # the lock time-out of a session is one second
            tx.execute(text("UPDATE intents.intent SET version = version + 1 WHERE id = :id"), {"id": intent_id})
        answer = submitted.result(PATIENT_S)

    assert answer.status_code == 201, answer.json


def test_a_cancel_outlasts_a_frozen_holder_of_its_row(desk: Desk, order: Order) -> None:
    """Postgres ends a transaction that has done nothing for five seconds."""
    intent_id, frozen = intent_of(desk, order), desk.deps.engine.raw_connection()
    frozen.detach()
    frozen.cursor().execute("SELECT 1 FROM intents.intent WHERE id = %s FOR UPDATE", (str(intent_id),))

    answer = desk.submit(cancel(intent_id))

    assert answer.status_code == 201, answer.json
    with pytest.raises(psycopg2.OperationalError):
        frozen.commit()


@COMMANDS
def test_a_row_that_does_not_come_free_in_time_is_an_outage_and_nothing_is_written(
    desk: Desk, order: Order, command: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "TIME_LIMIT_S", 0.3)
    intent_id = intent_of(desk, order)
    with held_row(desk, intent_id):
        answers = [desk.submit(command(intent_id)), submit_batch(desk, command(intent_id), atomic=True)]
        [result] = submit_batch(desk, command(intent_id)).json["results"]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(503, "unavailable")] * 2
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
    assert (result["status"], result["problem"]["code"]) == (503, "unavailable")
    assert len(desk.rows("action")) == 1


@pytest.mark.parametrize(
    "send",
    [
        lambda desk: desk.submit(replace(desk.created(limit())["intent_id"])),  # a CREATE needs no thread
        lambda desk: desk.submit(limit(), query="?dry_run=false"),
        lambda desk: submit_batch(desk, limit()),
        lambda desk: submit_batch(desk, limit(), atomic=True),
    ],
    ids=["fast path", "Flask", "batch", "atomic batch"],
)
def test_what_a_request_has_waited_for_a_thread_it_does_not_wait_for_a_lock_as_well(
    desk: Desk, send: Callable[[Desk], TestResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(desk, max_orders_per_minute=1_000)  # they are counted under the account's lock
    queue = desk.app.extensions["front"]._queue
    acquire, limit_lock_wait, waits_s = queue.acquire, OpenTransaction.limit_lock_wait, list[float]()

    async def acquire_late(*arguments: Any, **options: Any) -> Slot:
        await asyncio.sleep(0.5)
        slot: Slot = await acquire(*arguments, **options)
        return slot

    def note(tx: OpenTransaction, seconds: float) -> None:
        waits_s.append(seconds)
        limit_lock_wait(tx, seconds)

    monkeypatch.setattr(queue, "acquire", acquire_late)
    monkeypatch.setattr(OpenTransaction, "limit_lock_wait", note)

    assert send(desk).status_code in (200, 201)
    assert waits_s and max(waits_s) <= deadline.TIME_LIMIT_S - 0.5


def test_one_idempotency_key_from_many_connections_is_one_cancel_of_a_filling_order(desk: Desk, order: Order) -> None:
    intent_id, callers = intent_of(desk, order), 6
    with ThreadPoolExecutor(callers) as pool, desk.platform.admin() as connection:
        with held_row(desk, intent_id):
            submitted = [pool.submit(desk.submit, cancel(intent_id), Idempotency_Key="once") for _ in range(callers)]
            eventually(lambda: waiters(connection) >= 2)  # as many threads as one key may hold
        answers = [request.result(PATIENT_S) for request in submitted]

    assert [answer.status_code for answer in answers] == [201] * callers
    assert len({answer.json["id"] for answer in answers}) == 1
    assert len(desk.rows("action")) == 2


def test_the_recorder_and_commands_of_the_same_intents_never_wait_for_each_other_in_a_circle(desk: Desk) -> None:
    """A deadlock would be a request answered 503, or a record that raised."""
    orders = [open_order(desk) for _ in range(4)]
    intents = [intent_of(desk, order) for order in orders]

    def command(place: int) -> int:
        body = (bigger, cancel)[place // 4 % 2](intents[place % 4])
        return desk.submit(body, Idempotency_Key=f"k{place % 8}").status_code

    def record(place: int) -> None:
        some = [orders[(place + step) % 4] for step in range(3)]
        recorder.record(desk.deps.connections, [_reported(desk, order, place) for order in some])

    with ThreadPoolExecutor(8) as pool:
        recorded = [pool.submit(record, place) for place in range(24)]
        answers = [pool.submit(command, place) for place in range(24)]
        statuses = {answer.result(PATIENT_S) for answer in answers}
        for recording in recorded:
            recording.result(PATIENT_S)

    assert statuses <= {200, 201, 409, 422}
    assert {row["status"] for row in desk.rows("intent")} == {"PENDING_CANCEL"}


def _reported(desk: Desk, order: Order, place: int) -> BrokerReport:
    now, one = datetime.now(UTC), Decimal(1)
    shown = changed(order, filled_quantity=one * (place + 1), average_price=Decimal(99), updated_at=now)
    execution = Execution(f"y-{order.client_order_id}-{place}", order.broker_order_id, one, Decimal(99), now)
    return BrokerReport(desk.account_id, shown, now, execution)
