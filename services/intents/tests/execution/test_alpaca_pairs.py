"""Two exits as one order in Alpaca's words."""

from decimal import Decimal

import pytest

from tip_broker_alpaca.account import Alpaca, Connection
from tip_brokers import Change, NewOrder, OutcomeUnknown, StopExit

from .scripted import SHOWN, Scripted

PAIR = NewOrder(
    "tip-1", "ABC", "SELL", "Limit", Decimal(10), "GTC", Decimal(110), stop_exit=StopExit(Decimal(90), Decimal(89))
)
LEG = {**SHOWN, "id": "b2", "client_order_id": "theirs", "type": "stop", "status": "held", "order_class": "oco"}
OCO = {**SHOWN, "order_class": "oco"}


@pytest.fixture
def alpaca(scripted: Scripted) -> Alpaca:
    return Connection(scripted.url, connect_seconds=5, read_seconds=10).account({"key_id": "k", "secret_key": "s"})


def test_a_pair_is_one_request_with_both_prices(alpaca: Alpaca, scripted: Scripted) -> None:
    scripted.says(200, {**OCO, "legs": [LEG]})

    made = alpaca.create(PAIR)

    assert [body for _, _, body in scripted.requests] == [
        {
            "symbol": "ABC", "side": "sell", "type": "limit", "qty": "10", "time_in_force": "gtc",
            "client_order_id": "tip-1", "order_class": "oco", "take_profit": {"limit_price": "110"},
            "stop_loss": {"stop_price": "90", "limit_price": "89"},
        }
    ]  # fmt: skip
    assert made.legs and [(leg.broker_order_id, leg.client_order_id, leg.kind) for leg in made.legs] == [
        ("b2", "theirs", "Stop")
    ]


def test_a_leg_is_replaced_by_its_price_alone(alpaca: Alpaca, scripted: Scripted) -> None:
    scripted.says(200, {**LEG, "client_order_id": "tip-2"})

    alpaca.replace("b2", Change("tip-2", Decimal(10), "GTC", stop_price=Decimal(95), only_prices=True))

    assert scripted.requests == [("PATCH", "/v2/orders/b2", {"stop_price": "95", "client_order_id": "tip-2"})]


def test_a_pair_that_is_found_without_its_leg_is_read_by_its_id(alpaca: Alpaca, scripted: Scripted) -> None:
    scripted.says(200, {**OCO, "legs": None})

    found = alpaca.find("tip-1", "ABC")

    assert found and found.legs == ()
    assert [path for _, path, _ in scripted.requests] == [
        "/v2/orders:by_client_order_id?client_order_id=tip-1&nested=true", "/v2/orders/b1?nested=true",
    ]  # fmt: skip


@pytest.mark.parametrize("status", [404, 500, 429])
def test_a_pair_that_was_found_stays_found_whatever_the_second_query_says(
    alpaca: Alpaca, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    scripted.says(200, {**OCO, "legs": None})
    query = alpaca._found_order

    def changed_meanwhile(path: str, **more: str) -> object:
        found = query(path, **more)
        scripted.says(status, {"message": "later"})
        return found

    monkeypatch.setattr(alpaca, "_found_order", changed_meanwhile)
    found = alpaca.find("tip-1", "ABC")

    assert found and (found.broker_order_id, found.legs) == ("b1", ())


def test_an_order_that_is_alone_has_no_legs(alpaca: Alpaca, scripted: Scripted) -> None:
    scripted.says(200, {**SHOWN, "order_class": "simple", "legs": None})

    found = alpaca.find("tip-1", "ABC")

    assert found and found.legs is None
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("legs", [7, [None], [{**LEG, "filled_qty": "NaN"}], [[]], {"id": "b2"}])
def test_legs_that_cannot_be_read_are_a_broken_answer(alpaca: Alpaca, scripted: Scripted, legs: object) -> None:
    scripted.says(200, {**OCO, "legs": legs})

    with pytest.raises(OutcomeUnknown):
        alpaca.create(PAIR)
