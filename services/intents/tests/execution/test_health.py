"""What an executor reports of itself: whether brokers can be reached, and whether it still works."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import requests

from intents.execution.client_order_id import client_order_id
from tip_testing.commands import create
from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually


@pytest.fixture
def health() -> Callable[[str, str], tuple[int, Any]]:
    def get(port: str, path: str) -> tuple[int, Any]:
        answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=60)
        return answer.status_code, answer.json() if path.startswith("/health") else answer.text

    return get


def test_an_executor_that_reaches_no_broker_is_live_but_not_ready(desk, start, paper, health, reaches):
    nowhere, port = str(reserved_port()), str(reserved_port())
    lost = start("executor", HEALTH_PORT=port, PAPER_BROKER_URL=f"http://127.0.0.1:{nowhere}")
    assert health(port, "/health/ready") == (200, {"status": "ready", "circuits": {}})

    intents = [desk.created(create("SIM.OPEN", "1")) for _ in range(8)]

    is_open = (503, {"status": "not ready", "circuits": {"paper paper": "open"}})
    eventually(lambda: health(port, "/health/ready") == is_open)
    gauge = 'tip_broker_circuit{broker="paper",environment="paper"} 2.0'
    eventually(lambda: gauge in health(port, "/metrics")[1])  # half open for a moment, whenever one tries
    assert health(port, "/health/live") == (200, {"status": "live"})

    lost.end()
    port = str(reserved_port())
    found = start("executor", HEALTH_PORT=port)
    for intent in intents:
        reaches(intent, "ACCEPTED")
    assert health(port, "/health/ready") == (200, {"status": "ready", "circuits": {"paper paper": "closed"}})
    found.end()


def test_one_account_with_slow_orders_does_not_take_all_the_threads(desk, new_desk, start, paper, hold_back, reaches):
    other, slow = new_desk(), 20
    start("executor", EXECUTOR_THREADS="4", EXECUTOR_ACCOUNT_CALLS="2", EXECUTOR_LEASE_SECONDS="15")
    with hold_back(other):
        intents = [desk.created(create("SIM.SLOW", "1")) for _ in range(slow)]
        quick = other.created(create("SIM.OPEN", "1"))

    for intent in intents:
        reaches(intent, "ACCEPTED", "FILLED", seconds=90)

    names = {client_order_id(row["id"]) for owner in (desk, other) for row in owner.rows("action")}
    made = [order["client_order_id"] for order in paper.ledger() if order["client_order_id"] in names]
    assert len(made) == slow + 1
    assert made.index(client_order_id(UUID(quick["id"]))) < slow / 2
