"""After the log was restored to an earlier state: what happened at the broker since is found, nothing is sent twice."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import requests
from sqlalchemy import create_engine

from chassis import db
from intents.execution.client_order_id import client_order_id
from intents.execution.credentials import derived
from intents.store.epochs import begin_epoch
from tip_testing.commands import create
from tip_testing.waiting import eventually

from .conftest import PAPER_SECRET


def headers(desk: Any) -> dict[str, str]:
    keys = derived(desk.account_id, PAPER_SECRET)
    return {"APCA-API-KEY-ID": keys["key_id"], "APCA-API-SECRET-KEY": keys["secret_key"]}


def post(paper: Any, desk: Any, name: str) -> None:
    body = {"symbol": "SIM.OPEN", "side": "buy", "type": "market", "qty": "10", "time_in_force": "day"}
    body["client_order_id"] = name
    requests.post(paper.url + "/v2/orders", json=body, headers=headers(desk), timeout=60).raise_for_status()


@pytest.fixture(autouse=True)
def _no_process_is_left_over(start: Any) -> Any:
    yield
    for worker in start.started:
        worker.end()


@pytest.fixture
def restore(platform: Any) -> Callable[[], None]:
    def begin() -> None:
        engine = create_engine(db.with_driver(platform.admin_url))
        with engine.begin() as tx:
            begin_epoch(tx)
        engine.dispose()

    return begin


def test_an_account_without_open_intents_is_compared_with_its_broker_and_unknown_orders_are_adopted(
    desk, paper, start, restore
):
    name = "tip-" + "0" * 31 + "1"
    post(paper, desk, name)  # by an intent of which the restored log knows nothing
    assert desk.rows("account_event") == []

    restore()
    start("reconciler")

    [row] = eventually(lambda: [row for row in desk.rows("account_event") if row["type"] == "BROKER_ORDER"], 60)
    assert row["payload"]["reason_code"] == "ADOPTED" and row["intent_id"] is None
    assert [order["client_order_id"] for order in desk.rows("broker_order")] == [name]
    eventually(lambda: [account["epoch"] for account in desk.rows("broker_account")] != [None])


@pytest.mark.parametrize("reconciled_first", [True, False])
def test_what_the_restored_log_does_not_know_to_be_sent_is_queried_before_it_is_sent(
    reconciled_first, desk, paper, start, restore, hold_back, reaches, orders
):
    paper.faults(accept_duplicate_client_order_ids=True)  # so that only the query can save us
    with hold_back():
        intent = desk.created(create("SIM.OPEN"))
        post(paper, desk, client_order_id(UUID(intent["id"])))  # after the moment to which the log was restored
        restore()
        if reconciled_first:
            start("reconciler")
            eventually(lambda: desk.rows("broker_order"), 60)
    start("executor")

    reaches(intent, "ACCEPTED", seconds=60)

    paper.faults()
    assert [order["posts"] for order in orders()] == [1]


def test_what_happened_at_the_broker_meanwhile_is_in_the_log_of_the_process_that_finds_it(
    desk, paper, start, restore, reaches
):
    executor = start("executor")
    intent = desk.created(create("SIM.OPEN"))
    reaches(intent, "ACCEPTED")
    executor.end()
    requests.delete(f"{paper.url}/v2/orders", headers=headers(desk), timeout=60).raise_for_status()
    restore()

    reconciler = start("reconciler", LOG_FORMAT="json")

    reaches(intent, "CANCELED")
    lines = eventually(lambda: [line for line in reconciler.output().splitlines() if '"order_reported"' in line])
    assert json.loads(lines[0])["intent_id"] == intent["intent_id"]
