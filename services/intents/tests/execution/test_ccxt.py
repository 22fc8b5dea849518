"""Orders at crypto exchanges: the platform's processes, the unmodified library, an exchange on loopback."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from intents.execution.client_order_id import client_order_id
from tip_testing.commands import Body, cancel, create, limit, replace
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange
from tip_testing.waiting import eventually

from ..conftest import Desk
from .conftest import give_credential

ENVIRONMENTS = {"binance": "paper", "kraken": "live"}
UNPROVEN = "okx"
QUOTES = {"binance": "USDT", "kraken": "USD", UNPROVEN: "USDT"}


@dataclass(frozen=True)
class Trader:
    """An account at the exchange."""

    desk: Desk
    exchange: LoopbackExchange

    def symbol(self, coin: str) -> str:
        return f"{coin}/{QUOTES[self.exchange.id]}"

    def market(self, coin: str) -> Any:
        return self.desk.created(create(self.symbol(coin), "0.5"))

    def rests(self, coin: str = "OPEN") -> Any:
        return self.desk.created(limit(self.symbol(coin), "0.5", "30", time_in_force="GTC"))

    def buys(self, coin: str, price: str = "20") -> Any:
        return self.desk.created(limit(self.symbol(coin), "0.5", price, time_in_force="GTC"))

    def reaches(self, action: Any, *statuses: str) -> Any:
        def state() -> Any:
            found = self.desk.get(f"/{action['intent_id']}").json["state"]
            return found if found["status"] in statuses else None

        return eventually(state)

    def orders(self, action: Any) -> list[Any]:
        """What the exchange has of the action."""
        ours = client_order_id(UUID(action["id"]))
        return [order for order in self.exchange.book.orders if order.client_id and ours.endswith(order.client_id)]


@pytest.fixture(scope="module")
def exchanges(start: Callable[..., Any]) -> Iterator[dict[str, LoopbackExchange]]:
    made = {name: LoopbackExchange(name) for name in (*ENVIRONMENTS, UNPROVEN)}
    addresses = ",".join(f"{name}={exchange.url}" for name, exchange in made.items())
    for kind in ("reconciler", "executor"):
        start(kind, CCXT_ADDRESSES=addresses)
    yield made
    for exchange in made.values():
        exchange.stop()


@pytest.fixture(params=ENVIRONMENTS)
def trader(
    request: pytest.FixtureRequest, exchanges: dict[str, LoopbackExchange], new_desk: Callable[..., Desk]
) -> Trader:
    exchange = exchanges[request.param]
    desk = new_desk(ENVIRONMENTS[exchange.id], broker=f"ccxt:{exchange.id}")
    give_credential(desk, "", apiKey=KEY, secret=SECRET)
    return Trader(desk, exchange)


@pytest.fixture
def at_unproven(exchanges: dict[str, LoopbackExchange], new_desk: Callable[..., Desk]) -> Trader:
    desk = new_desk("live", broker=f"ccxt:{UNPROVEN}")
    give_credential(desk, "", apiKey=KEY, secret=SECRET, password="any")
    return Trader(desk, exchanges[UNPROVEN])


def test_an_order_is_filled(trader: Trader) -> None:
    intent = trader.market("FILL")

    state = trader.reaches(intent, "FILLED")
    assert (state["filled_quantity"], float(state["average_fill_price"])) == ("0.5", 20.0)
    assert len(trader.orders(intent)) == 1


def test_an_order_is_filled_in_part_and_the_rest_canceled(trader: Trader) -> None:
    intent = trader.rests("HALF")
    trader.reaches(intent, "PARTIALLY_FILLED")

    trader.desk.created(cancel(intent["intent_id"]))

    assert trader.reaches(intent, "CANCELED")["filled_quantity"] == "0.25"


@pytest.mark.parametrize("coin", ["CUT", "SILENT"])
def test_an_order_whose_answer_was_lost_is_found_and_not_sent_again(trader: Trader, coin: str) -> None:
    intent = trader.market(coin)

    trader.reaches(intent, "FILLED")
    assert len(trader.orders(intent)) == 1


def test_an_order_that_was_lost_on_its_way_is_sent_again_once_it_is_known_not_to_be_there(trader: Trader) -> None:
    """The exchange takes an id twice: so it is queried several times before, and the first request has expired."""
    trader.exchange.book.lose_next = True
    intent = trader.market("FILL")

    trader.reaches(intent, "FILLED")
    assert not trader.exchange.book.lose_next and len(trader.orders(intent)) == 1


def test_a_refusal_is_the_exchanges_own(trader: Trader) -> None:
    assert trader.reaches(trader.market("REJECT"), "REJECTED")["reason_code"] == "INSUFFICIENT_BUYING_POWER"


@pytest.mark.parametrize(
    ("quantity", "code"), [("0.0025", "PRECISION"), ("0.001", "BELOW_MINIMUM")], ids=["steps", "least quantity"]
)
def test_what_is_too_fine_or_too_small_is_not_sent(trader: Trader, quantity: str, code: str) -> None:
    intent = trader.desk.created(create(trader.symbol("FILL"), quantity))

    assert trader.reaches(intent, "REJECTED")["reason_code"] == code
    assert trader.orders(intent) == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (create("BTCUSDT"), "/command/payload/symbol"),
        (limit("BTC/USDT", time_in_force="DAY"), "/command/payload/spec/Limit/time_in_force"),
    ],
    ids=["symbol", "time in force"],
)
def test_what_no_exchange_takes_is_refused_at_submit(trader: Trader, body: Body, pointer: str) -> None:
    refused = trader.desk.submit(body)

    assert (refused.status_code, refused.json["code"]) == (422, "broker_cannot")
    assert [error["pointer"] for error in refused.json["errors"]] == [pointer]


def test_an_order_is_not_replaced(trader: Trader) -> None:
    intent = trader.rests()
    trader.reaches(intent, "ACCEPTED")

    assert trader.desk.submit(replace(intent["intent_id"])).json["code"] == "broker_cannot"


def test_a_position_is_what_the_exchange_has_of_the_coin(trader: Trader) -> None:
    before = trader.exchange.book.held("FILL")
    trader.reaches(trader.market("FILL"), "FILLED")

    def position() -> bool:
        rows = [row for row in trader.desk.rows("position") if row["symbol"] == trader.symbol("FILL")]
        return [float(row["quantity"]) for row in rows] == [float(before) + 0.5]

    eventually(position)


@pytest.mark.parametrize(
    ("kind", "prices"),
    [("Stop", {"stop_price": "40"}), ("StopLimit", {"stop_price": "40", "limit_price": "41"})],
    ids=["Stop", "StopLimit"],
)
def test_a_stop_rests_until_its_price(trader: Trader, kind: str, prices: dict[str, str]) -> None:
    spec = {"quantity": "0.5", "time_in_force": "GTC", **prices}
    intent = trader.desk.created(create(trader.symbol("OPEN"), **{kind: spec}))

    trader.reaches(intent, "ACCEPTED")
    [order] = trader.orders(intent)
    shown = {"stop_price": order.stop_price, "limit_price": order.limit_price}
    assert {name: str(price) for name, price in shown.items() if price is not None} == prices


def test_an_order_that_the_exchange_refuses_in_words_that_the_library_does_not_know_is_refused(trader: Trader) -> None:
    if trader.exchange.id != "kraken":
        pytest.skip("Binance has a code for every refusal")

    assert trader.reaches(trader.market("MANY"), "REJECTED")["reason_code"] == "BROKER_REFUSED"


def test_no_key_is_in_the_tables(trader: Trader) -> None:
    trader.reaches(trader.market("FILL"), "FILLED")

    rows = [*trader.desk.rows("broker_login"), *trader.desk.rows("broker_account")]
    assert rows and not [row for row in rows if KEY in str(dict(row)) or SECRET in str(dict(row))]


def test_an_order_at_an_exchange_that_nothing_proves_is_filled_and_another_canceled(at_unproven: Trader) -> None:
    cancels = at_unproven.exchange.book.cancels
    filled, resting = at_unproven.buys("FILL"), at_unproven.buys("HALF")

    assert at_unproven.reaches(filled, "FILLED")["filled_quantity"] == "0.5"
    at_unproven.reaches(resting, "PARTIALLY_FILLED")
    at_unproven.desk.created(cancel(resting["intent_id"]))
    assert at_unproven.reaches(resting, "CANCELED")["filled_quantity"] == "0.25"
    assert at_unproven.exchange.book.cancels == cancels + 1


@pytest.mark.parametrize("coin", ["CUT", "MANY"])
def test_an_order_whose_outcome_nobody_knows_there_waits_for_an_operator(at_unproven: Trader, coin: str) -> None:
    intent = at_unproven.buys(coin)

    def waits() -> bool:
        state = at_unproven.desk.get(f"/{intent['intent_id']}").json["state"]
        return bool(state["reason_code"] == "OPERATOR_REQUIRED")

    eventually(waits)
    assert len(at_unproven.orders(intent)) == (1 if coin == "CUT" else 0)


def test_an_order_that_the_exchange_lists_with_our_id_needs_no_operator(at_unproven: Trader) -> None:
    intent = at_unproven.buys("CUT", "10")  # below the market, so that it rests

    at_unproven.reaches(intent, "ACCEPTED")
    assert len(at_unproven.orders(intent)) == 1
