"""Orders that belong together, as the payload of one CREATE."""

import pytest

from tip_client import Bracket, ConfigurationError, Limit, Market, OneCancelsOther, OneTriggersOther, Stop
from tip_client.order_groups import with_exits


def test_a_bracket_is_an_entry_with_two_exits_of_its_quantity() -> None:
    group = Bracket(Limit("AAPL", "BUY", 10, limit="180", client_id="mine"), take_profit="190", stop_loss="170")

    assert group.to_json() == {
        "symbol": "AAPL",
        "order_side": "BUY",
        "client_id": "mine",
        "spec": {
            "Bracket": {
                "entry": {"Limit": {"quantity": "10", "limit_price": "180"}},
                "take_profit": {"Limit": {"quantity": "10", "limit_price": "190", "time_in_force": "GTC"}},
                "stop_loss": {"Stop": {"quantity": "10", "stop_price": "170", "time_in_force": "GTC"}},
            }
        },
    }


def test_a_stop_loss_with_a_limit_is_a_stop_limit() -> None:
    group = Bracket(Market("AAPL", "SELL", 1), take_profit=90, stop_loss=110, stop_limit=111, time_in_force="DAY")

    exits = group.to_json()["spec"]["Bracket"]
    assert exits["stop_loss"] == {
        "StopLimit": {"quantity": "1", "limit_price": "111", "stop_price": "110", "time_in_force": "DAY"}
    }


def test_orders_that_cancel_each_other_are_of_one_symbol_and_side() -> None:
    one, other = Limit("AAPL", "SELL", 1, limit=190), Stop("AAPL", "SELL", 1, stop=170)

    assert list(OneCancelsOther(one, other).to_json()["spec"]["OneCancelsOther"]) == ["one", "other"]
    with pytest.raises(ConfigurationError):
        OneCancelsOther(one, Stop("AAPL", "BUY", 1, stop=170))


def test_an_order_triggers_one_of_the_other_side() -> None:
    parent, child = Market("AAPL", "BUY", 1), Stop("AAPL", "SELL", 1, stop=170)

    assert list(OneTriggersOther(parent, child).to_json()["spec"]["OneTriggersOther"]) == ["parent", "child"]
    with pytest.raises(ConfigurationError):
        OneTriggersOther(parent, parent)


@pytest.mark.parametrize(
    ("exits", "kind"),
    [
        ({}, "Market"),
        ({"stop_loss": 1}, "OneTriggersOther"),
        ({"take_profit": 9}, "OneTriggersOther"),
        ({"take_profit": 9, "stop_loss": 1}, "Bracket"),
    ],
)
def test_the_exits_that_are_given_make_the_group(exits: dict[str, int], kind: str) -> None:
    order = with_exits(Market("AAPL", "BUY", 1), **exits)

    assert list(order.to_json()["spec"]) == [kind]
