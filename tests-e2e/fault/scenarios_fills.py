"""Fills: none is lost, none is ordered twice, and a requested total is not exceeded unseen."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

from fault_contract import OPEN_AT_BROKER
from fault_proxy import Exchange, Fault
from fault_scenario import scenario
from fault_trial import Trial

FAST = "SIM.TRICKLE500"
PARTIAL = "SIM.PARTIAL50"
CANCELS = 10


@contextmanager
def without_reconciler(trial: Trial) -> Iterator[None]:
    """Nobody receives the broker's updates; started again afterwards."""
    for child in trial.on.of("reconciler"):
        child.kill()
    try:
        yield
    finally:
        trial.on.revive(doom=0.0)


def _replaced(trial: Trial, intent_id: str, quantity: str, orders: int) -> None:
    """Returns when the replacement is an order at the broker and the intent knows it."""
    trial.replace(intent_id, quantity)
    trial.wait(lambda: len(trial.orders(intent_id)) == orders, f"{orders} orders at the broker")
    trial.wait_for_status(intent_id, "ACCEPTED", "PARTIALLY_FILLED")


@scenario(alone=True)
def lost_fill(trial: Trial) -> None:
    """CREATE, REPLACE and CANCEL of an order that fills in part, without a reconciler: every fill counts in the end."""
    with without_reconciler(trial):
        intent_id = trial.create(PARTIAL, "6")
        trial.wait_for_status(intent_id, "ACCEPTED", "PARTIALLY_FILLED")
        _replaced(trial, intent_id, "10", orders=2)
        trial.cancel(intent_id)
        trial.wait_for_status(intent_id, "CANCELED")
        trial.note(f"ended with {trial.filled(intent_id)} filled; the broker: {trial.filled_at_broker(intent_id)}")
    trial.expect_fills_agree(intent_id)


@scenario(alone=True)
def replace_chain(trial: Trial) -> None:
    """CREATE 6, REPLACE 10, REPLACE 12 while fills go unreceived: the third order is for 12 less what is filled."""
    with without_reconciler(trial):
        intent_id = trial.create(PARTIAL, "6")
        trial.wait_for_status(intent_id, "ACCEPTED", "PARTIALLY_FILLED")
        _replaced(trial, intent_id, "10", orders=2)
        _replaced(trial, intent_id, "12", orders=3)
        orders = trial.orders(intent_id)
    filled = sum(Decimal(order["filled_qty"]) for order in orders[:2])
    quantity = Decimal(orders[2]["qty"])
    trial.note(f"filled {filled} before the third order, which is for {quantity}")
    trial.expect(quantity == 12 - filled, f"the third order is for {quantity} where {12 - filled} of 12 remain")
    trial.expect_fills_agree(intent_id)


def filling(trial: Trial, *sizes: str | None, then: str | None = None) -> Fault:
    """Passes the request, but the order fills on its way to the broker, and perhaps at once after it."""

    def fault(exchange: Exchange) -> None:
        for size in sizes:
            trial.quote(trial.symbol, ask="10", size=size)
        answer = exchange.forward()
        if then is not None:
            trial.quote(trial.symbol, ask="10", size=then)
        exchange.reply(answer)

    return fault


def partly_filled(trial: Trial) -> str:
    """An order of 40 of which 5 are filled."""
    trial.quote(trial.symbol, ask="10", size="5")
    intent_id = trial.create(trial.symbol, "40", limit="10")
    trial.wait(lambda: trial.filled(intent_id) == 5, "5 filled")
    return intent_id


def _still_to_come(trial: Trial, intent_id: str) -> Decimal:
    """What is filled, and what the open orders may still fill."""
    orders = trial.orders(intent_id)
    left = (
        Decimal(order["qty"]) - Decimal(order["filled_qty"]) for order in orders if order["status"] in OPEN_AT_BROKER
    )
    return sum((Decimal(order["filled_qty"]) for order in orders), Decimal(0)) + sum(left, Decimal(0))


@scenario()
def replace_while_filling(trial: Trial) -> None:
    """Two more are filled between the platform's reading and its PATCH: it reduces the remainder by itself."""
    intent_id = partly_filled(trial)
    trial.on_line("PATCH", filling(trial, "2"), count=1)
    trial.replace(intent_id, "60", limit="10")
    trial.wait(lambda: len(trial.orders(intent_id)) > 1, "the replacement at the broker")
    trial.note(f"after the REPLACE to 60 the broker may fill {_still_to_come(trial, intent_id)} in all")
    trial.wait(lambda: _still_to_come(trial, intent_id) <= 60, "no more than 60 can be filled at the broker")
    system = [action["command"]["type"] for action in trial.actions(intent_id) if action["actor"]["type"] == "system"]
    too_many = any(Decimal(order["qty"]) == 55 for order in trial.orders(intent_id))
    trial.expect(not too_many or "REPLACE" in system, f"an order for 55 where 53 were left, and no REPLACE: {system}")
    trial.wait_for_status(intent_id, "PARTIALLY_FILLED")
    trial.quote(trial.symbol, ask="10", size="1000")
    trial.wait_for_status(intent_id, "FILLED")
    trial.expect_fills_agree(intent_id)
    trial.expect(trial.filled(intent_id) == 60, f"{trial.filled(intent_id)} of 60 were filled")


@scenario()
def overfill_in_one_burst(trial: Trial) -> None:
    """Everything is filled before the platform can reduce it: the overfill is an event, and all of it counts."""
    intent_id = partly_filled(trial)
    trial.on_line("PATCH", filling(trial, "2", then="1000"), count=1)
    trial.replace(intent_id, "60", limit="10")
    trial.wait(lambda: trial.filled_at_broker(intent_id) == 62, "62 filled at the broker")
    trial.expect_fills_agree(intent_id)
    trial.wait(lambda: "OVERFILLED" in trial.reason_codes(intent_id), "an event OVERFILLED")


@scenario()
def cancel_while_filling(trial: Trial) -> None:
    """REPLACE and CANCEL of an order that fills 500 times a second are never refused as busy."""
    for _ in range(CANCELS):
        intent_id = trial.create(FAST, "90000")
        trial.wait_for_status(intent_id, "PARTIALLY_FILLED")
        trial.replace(intent_id, "80000")
        trial.cancel(intent_id)
        trial.wait_for_status(intent_id, "CANCELED")
    trial.expect_fills_agree(intent_id)
