"""A cancel of everything at a real broker, while those who carry it out are killed: none open, none canceled twice."""

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tip_testing.commands import batch, create
from tip_testing.waiting import eventually

ORDERS = 60
STEPS = ("executor.after_claim", "executor.before_send", "executor.after_send", "executor.before_commit")


@pytest.mark.timeout(300)
def test_all_orders_are_canceled_once_though_executors_and_schedulers_are_killed(
    desk: Any, start: Any, orders: Callable[[], list[Any]]
) -> None:
    first = start("executor")
    submits = batch(*[create("SIM.OPEN", "1") for _ in range(ORDERS)])
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
