"""A cancel of everything at a real broker, while those who carry it out are killed: none open, none canceled twice."""

import signal
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tip_testing.commands import batch, create, limit
from tip_testing.waiting import eventually

ORDERS = 60
STEPS = ("executor.after_claim", "executor.before_send", "executor.after_send", "executor.before_commit")


@pytest.mark.timeout(300)
def test_all_orders_are_canceled_once_though_executors_and_schedulers_are_killed(
    desk: Any, start: Any, orders: Callable[[], list[Any]]
) -> None:
    first = start("executor")
    while missing := ORDERS - len(desk.rows("intent")):  # a database that is slow takes some of them
        submits = batch(*[create("SIM.OPEN", "1") for _ in range(missing)])
        desk.client.post(f"{desk.path}/batch", json=submits, headers=desk.headers)
    eventually(lambda: {row["status"] for row in desk.rows("intent")} == {"ACCEPTED"}, 120)
    first.end(signal.SIGKILL)

    answer = desk.client.post(f"{desk.path}/cancel", headers=desk.headers)
    doomed = [start("executor", wait=False, TIP_CRASH_AT=step) for step in STEPS]
    scheduler = start("scheduler")
    eventually(lambda: any(row["type"] == "CANCEL" for row in desk.rows("action")), 60)
    scheduler.end(signal.SIGKILL)
    start("scheduler")
    eventually(lambda: all(worker.returncode() is not None for worker in doomed), 90)
    start("executor")

    def operation() -> Any:
        return desk.client.get(answer.headers["Location"], headers=desk.headers).json

    eventually(lambda: operation()["status"] == "COMPLETED", 120)
    assert (operation()["total"], operation()["done"]) == (ORDERS, ORDERS)
    assert Counter(order["status"] for order in orders()) == {"canceled": ORDERS}
    cancels = Counter(row["intent_id"] for row in desk.rows("action") if row["type"] == "CANCEL")
    assert set(cancels.values()) == {1} and len(cancels) == ORDERS


@pytest.mark.timeout(300)
def test_positions_are_closed_after_their_open_orders_have_ended(
    desk: Any, start: Any, paper: Any, orders: Callable[[], list[Any]], reaches: Callable[..., Any]
) -> None:
    paper.quote("CLOSE", "99", "100")
    for kind in ("executor", "reconciler", "scheduler"):
        start(kind)
    reaches(desk.created(create("CLOSE", "7")), "FILLED", seconds=90)
    resting = desk.created(limit("CLOSE", "5", "1.00"))
    reaches(resting, "ACCEPTED", seconds=90)

    answer = desk.client.post(f"/v1/accounts/{desk.account_id}/positions/close", headers=desk.headers)

    def completed() -> bool:
        found = desk.client.get(answer.headers["Location"], headers=desk.headers).json
        return bool(found["status"] == "COMPLETED")

    eventually(completed, 120)
    traded = {(order["side"], order["status"]): order["filled_qty"] for order in orders()}
    assert traded == {("buy", "filled"): "7", ("buy", "canceled"): "0", ("sell", "filled"): "7"}


@pytest.mark.timeout(300)
def test_closes_that_overlap_close_once_though_executors_are_killed(
    desk: Any, start: Any, paper: Any, orders: Callable[[], list[Any]], reaches: Callable[..., Any]
) -> None:
    for earlier in start.started:
        earlier.end()  # an executor of another test would do the work of the one that is to die
    paper.quote("TWICE", "99", "100")
    first = start("executor")
    start("reconciler")
    reaches(desk.created(create("TWICE", "7")), "FILLED", seconds=90)
    first.end(signal.SIGKILL)
    path = f"/v1/accounts/{desk.account_id}/positions/close"

    answers = [desk.client.post(path, headers=desk.headers) for _ in range(3)]
    doomed = start("executor", wait=False, TIP_CRASH_AT="executor.after_send")
    for _ in range(2):
        start("scheduler")
    eventually(lambda: doomed.returncode() is not None, 90)
    answers.append(desk.client.post(path, headers=desk.headers))
    start("executor")

    def completed() -> bool:
        found = [desk.client.get(answer.headers["Location"], headers=desk.headers).json for answer in answers]
        return {operation["status"] for operation in found} == {"COMPLETED"}

    eventually(completed, 120)
    sold = sum(Decimal(order["filled_qty"]) for order in orders() if order["side"] == "sell")
    assert sold == 7
