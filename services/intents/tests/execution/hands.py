"""An executor that looks for nothing by itself, for tests of orders whose credential changes."""

from collections.abc import Callable
from typing import Any

import pytest

from intents.execution.client_order_id import client_order_id


@pytest.fixture(scope="module", autouse=True)
def executor(start: Callable[..., Any]) -> None:
    """It queries an unknown outcome only when a test makes it due."""
    start("executor", QUERY_AFTER_SECONDS="3600")


def make_due(desk: Any) -> None:
    desk.execute("UPDATE intents.intent SET next_attempt_at = now() WHERE account_id = :account_id")


@pytest.fixture
def reconciler(start: Callable[..., Any]) -> Any:
    """Only where a test wants it: it would find out what an unknown outcome is before anybody has queried it."""
    worker = start("reconciler")
    yield worker
    worker.end()


def state_of(desk: Any, intent: Any) -> Any:
    return desk.get(f"/{intent['intent_id']}").json["state"]


def of_desk(desk: Any, paper: Any) -> list[Any]:
    ours = {client_order_id(row["id"]) for row in desk.rows("action")}
    return [order for order in paper.ledger() if order["client_order_id"] in ours]
