"""Order groups where the broker reserves a position for the first order that closes it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tip_brokers import OrderStatus
from tip_testing.commands import Body, cancel, create, replace
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, bracket, filled_bracket, one_cancels_other, one_triggers_other


def until_canceled(body: Body) -> Body:
    """The group with legs that an exchange takes."""
    changed = deepcopy(body)
    [legs] = changed["command"]["payload"]["spec"].values()
    for leg in legs.values():
        for terms in leg.values():
            terms["time_in_force"] = "GTC"
    return changed


@pytest.mark.parametrize("body", [until_canceled(bracket("BTC/USDT")), until_canceled(one_cancels_other("BTC/USDT"))])
def test_where_the_broker_reserves_positions_exits_that_exclude_each_other_are_refused(
    new_desk: Callable[..., Desk], organization: Organization, body: Any
) -> None:
    """It would refuse the second, and that might be the stop."""
    desk = new_desk(organization=organization, broker="ccxt:binance")

    answer = desk.submit(body)

    assert (answer.status_code, answer.json["code"]) == (422, "broker_cannot")
    assert (
        answer.json["errors"][0]["pointer"] == f"/command/payload/spec/{next(iter(body['command']['payload']['spec']))}"
    )
    assert desk.rows("intent") == []
    assert desk.submit(until_canceled(one_triggers_other("BTC/USDT"))).status_code == 201


@pytest.mark.parametrize(
    ("one", "other", "detail"),
    [
        ({"Limit": {"limit_price": "110"}}, {"Limit": {"limit_price": "120"}}, "only as a Limit with a Stop"),
        ({"Limit": {"limit_price": "110"}}, {"TrailingStop": {"trail_amount": "5"}}, "only as a Limit with a Stop"),
        ({"Limit": {"limit_price": "110"}}, {"Stop": {"stop_price": "90", "time_in_force": "GTC"}}, "time in force"),
        ({"Limit": {"limit_price": "9", "time_in_force": "IOC"}}, {"Stop": {"stop_price": "8"}}, "time in force"),
    ],
)
def test_exits_that_cannot_be_one_order_are_refused_where_they_would_have_to_be(
    new_desk: Callable[..., Desk], organization: Organization, one: Any, other: Any, detail: str
) -> None:
    desk = new_desk(organization=organization)
    legs = {
        role: {kind: {"quantity": "10", **terms} for kind, terms in leg.items()}
        for role, leg in (("one", one), ("other", other))
    }

    answer = desk.submit(create("AAPL", side="SELL", OneCancelsOther=legs))

    assert (answer.status_code, answer.json["code"]) == (422, "broker_cannot")
    assert detail in answer.json["errors"][0]["message"] and desk.rows("intent") == []


@pytest.fixture
def filled(desk: Desk) -> Broker:
    """A bracket at the paper broker whose entry was filled in part and canceled; nothing of its exits is sent."""
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    broker.fill("entry", "6")
    broker.end("entry", OrderStatus.CANCELED)
    return broker


def open_actions(broker: Broker) -> dict[str, int]:
    legs = broker.legs()
    return {role: legs[role]["open_actions"] for role in ("take_profit", "stop_loss")}


def test_the_stop_of_a_pair_waits_until_it_is_known_what_became_of_the_limit(
    filled: Broker,
) -> None:
    assert open_actions(filled) == {"take_profit": 1, "stop_loss": 0}
    stop = filled.legs()["stop_loss"]
    assert (stop["status"], stop["reason_code"], stop["quantity"]) == ("PENDING", "WAITING_FOR_SIBLING", 6)


def test_what_the_entry_fills_after_the_pair_was_sent_is_reported_as_uncovered(filled: Broker, desk: Desk) -> None:
    filled.send()

    filled.fill("entry", "2")

    notes = [row["payload"] for row in desk.rows("account_event") if row["payload"].get("reason_code") is not None]
    [note] = [payload for payload in notes if payload["reason_code"] == "GROUP_UNCOVERED"]
    assert note["reason"] == "No order of its group closes 2 of what it has filled."
    assert {leg["quantity"] for role, leg in filled.legs().items() if role != "entry"} == {6}
    assert not any(leg["overordered"] for leg in filled.legs().values())


def test_a_cancel_of_the_stop_of_a_pair_that_nobody_has_sent_ends_it(filled: Broker, desk: Desk) -> None:
    desk.created(cancel(filled.legs()["stop_loss"]["id"]))
    assert open_actions(filled) == {"take_profit": 1, "stop_loss": 2}

    filled.send()

    assert filled.statuses() == {"entry": "CANCELED", "take_profit": "ACCEPTED", "stop_loss": "CANCELED"}


def test_the_time_in_force_of_an_exit_of_a_pair_cannot_be_replaced(filled: Broker, desk: Desk) -> None:
    filled.send()
    limit = {"Limit": {"quantity": "6", "limit_price": "111", "time_in_force": "DAY"}}

    answer = desk.submit(replace(filled.legs()["take_profit"]["id"], **limit))

    assert (answer.status_code, answer.json["code"]) == (422, "broker_cannot")
    assert answer.json["errors"][0]["pointer"] == "/command/payload/spec/Limit/time_in_force"


def test_where_each_exit_is_an_order_of_its_own_its_time_in_force_is_free(
    new_desk: Callable[..., Desk], organization: Organization
) -> None:
    desk = new_desk(organization=organization, broker="fix")
    broker = filled_bracket(desk)
    limit = {"Limit": {"quantity": "10", "limit_price": "111", "time_in_force": "DAY"}}

    assert desk.submit(replace(broker.legs()["take_profit"]["id"], **limit)).status_code == 201
