"""What may have been sent: shown as such, queried, and judged anew before it is sent again."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import requests

from intents.execution.client_order_id import client_order_id
from intents.execution.credentials import derived
from tip_testing.commands import cancel, create

from ..test_controls import disable
from .conftest import PAPER_SECRET


@pytest.fixture(scope="module", autouse=True)
def executor(start: Callable[..., Any]) -> None:
    """It queries by itself only after an hour, and no reconciler is there to find out before."""
    start("executor", QUERY_AFTER_SECONDS="3600")


@pytest.mark.parametrize("symbol", ["SIM.TIMEOUT_AFTER_ACCEPT", "SIM.ERROR500_AFTER_ACCEPT"])
def test_an_unknown_outcome_is_shown_and_then_settled_without_a_second_order(symbol, desk, orders, reaches):
    intent = desk.created(create(symbol))

    assert reaches(intent, "SUBMITTED")["outcome"] == "unknown"
    assert desk.get("/stats").json["by_status"]["SUBMITTED"] == 1
    assert [row["payload"]["outcome"] for row in desk.rows("account_event")] == ["unknown"]

    desk.execute("UPDATE intents.intent SET next_attempt_at = now() WHERE account_id = :account_id")

    assert reaches(intent, "ACCEPTED", "FILLED")["outcome"] is None
    assert [order["posts"] for order in orders()] == [1]


def _halt(desk: Any, _intent: Any) -> None:
    desk.execute(
        "INSERT INTO controls.account_switch (account_id, organization_id, trading_state) "
        "VALUES (:account_id, :organization_id, 'HALTED')",
        organization_id=desk.organization.id,
    )


def _make_stale(desk: Any, _intent: Any) -> None:
    desk.execute(
        "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
        "VALUES (:account_id, 'SIM.OPEN', :organization_id, 1000)",
        organization_id=desk.organization.id,
    )
    desk.execute("UPDATE intents.intent SET created_at = now() - interval '1 minute' WHERE account_id = :account_id")


def _cancel(desk: Any, intent: Any) -> None:
    desk.created(cancel(intent["intent_id"]))


def _disable_symbol(desk: Any, _intent: Any) -> None:
    disable(desk, "SIM.OPEN")


LATER = {"halted": _halt, "disabled": _disable_symbol, "stale": _make_stale, "canceled": _cancel}
ENDS = {
    "disabled": ("DENIED", "SYMBOL_DISABLED"),
    "halted": ("DENIED", "TRADING_HALTED"),
    "stale": ("EXPIRED", "STALE_ORDER"),
    "canceled": ("CANCELED", "NOT_FOUND_AT_BROKER"),
}


@pytest.fixture
def left_behind(desk: Any, hold_back: Any) -> Callable[[Callable[..., None]], Any]:
    """An intent whose executor died a minute ago, perhaps after it was sent; then something happened to it."""

    def make(happens: Callable[..., None]) -> Any:
        with hold_back():
            intent = desk.created(create("SIM.OPEN"))
            desk.execute(
                "UPDATE intents.intent SET submit_started_at = now() - interval '1 minute' "
                "WHERE account_id = :account_id"
            )
            desk.execute(
                "INSERT INTO intents.broker_order (account_id, client_order_id, intent_id, action_sequence, status, "
                "credential) VALUES (:account_id, :name, :intent_id, 1, 'STARTED', 'derived')",
                name=client_order_id(UUID(intent["id"])),
                intent_id=intent["intent_id"],
            )
            happens(desk, intent)
        return intent

    return make


@pytest.mark.parametrize("what", LATER)
def test_what_was_never_sent_is_not_sent_any_more_after_a_crash(what, desk, left_behind, orders, reaches):
    status, reason_code = ENDS[what]

    state = reaches(left_behind(LATER[what]), status)

    assert state["reason_code"] == reason_code and orders() == []
    assert [row["open_actions"] for row in desk.rows("intent")] == [0]


@pytest.mark.parametrize("what", ["halted", "disabled", "stale"])
def test_what_was_sent_before_a_crash_is_found_whatever_has_happened_since(
    what, desk, paper, left_behind, orders, reaches
):
    def sent_then(desk: Any, intent: Any) -> None:
        keys = derived(desk.account_id, PAPER_SECRET)
        headers = {"APCA-API-KEY-ID": keys["key_id"], "APCA-API-SECRET-KEY": keys["secret_key"]}
        body = {"symbol": "SIM.OPEN", "side": "buy", "type": "market", "qty": "10", "time_in_force": "day"}
        body["client_order_id"] = client_order_id(UUID(intent["id"]))
        requests.post(paper.url + "/v2/orders", json=body, headers=headers, timeout=60).raise_for_status()
        LATER[what](desk, intent)

    intent = left_behind(sent_then)

    assert reaches(intent, "ACCEPTED")["broker_order_id"] == orders()[0]["order_id"]
    assert [order["posts"] for order in orders()] == [1]
