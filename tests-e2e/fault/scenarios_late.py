"""Requests that reach the broker long after the platform has given them up, or that it gets twice."""

import threading
import time

from fault_proxy import Exchange, Hold, Request, answer, passing, path_is
from fault_scenario import scenario
from fault_trial import Trial

OPEN = "SIM.OPEN"
PARTIAL = "SIM.PARTIAL50"
FIND = "/v2/orders:by_client_order_id"
TOO_BUSY = answer(429, headers={"Retry-After": "1"})
GIVEN_UP_SECONDS = 10.0
"""Longer than three quiet periods (a call and a second), after which the clock alone would have given an order up."""


def _is_find(request: Request) -> bool:
    return path_is(FIND)(request)


def surfaces_after_the_end(trial: Trial, intent_id: str) -> None:
    """What must follow when an order appears whose intent has ended."""
    trial.wait(lambda: trial.orders(intent_id), "the late order at the broker")
    trial.wait(lambda: "ORDER_AFTER_END" in trial.reason_codes(intent_id), "an event ORDER_AFTER_END")
    trial.wait(lambda: not trial.open_orders(intent_id), "the order is canceled at the broker")
    trial.expect(len(trial.orders(intent_id)) == 1, f"orders at the broker: {trial.orders(intent_id)}")
    trial.expect_fills_agree(intent_id)


@scenario()
def late_order_after_cancel(trial: Trial) -> None:
    """A POST reaches the broker after its intent was canceled and given up: reported, canceled, its fill counted."""
    hold = Hold(cut=True)
    sent = trial.on_line("POST", hold)
    intent_id = trial.create(PARTIAL, "2")
    sent.wait_for_hits()
    trial.cancel(intent_id)
    trial.wait_for_status(intent_id, "CANCELED")
    hold.release()
    surfaces_after_the_end(trial, intent_id)


@scenario()
def late_order_after_halt(trial: Trial) -> None:
    """The same after a HALT (DENIED), and no update reports the order: the reconciler finds it."""
    hold = Hold(cut=True)
    sent = trial.on_line("POST", hold)
    intent_id = trial.create(trial.symbol, "2", limit="1")
    sent.wait_for_hits()
    trial.halt()
    trial.wait_for_status(intent_id, "DENIED")
    with trial.streams.holding(trial.symbol):
        hold.release()
        surfaces_after_the_end(trial, intent_id)


@scenario()
def not_given_up_while_unreachable(trial: Trial) -> None:
    """While the broker cannot be queried nothing is given up, nor at its first answer after that."""
    hold, readable = Hold(cut=True), threading.Event()
    sent = trial.on_line("POST", hold)

    def first_answer(exchange: Exchange) -> None:
        """The order arrives just after the broker has answered that it does not have it."""
        nothing = exchange.forward()
        hold.release()
        exchange.reply(nothing)

    def unreadable(request: Request) -> bool:
        return trial.mine(request) and bool(sent.hits) and not readable.is_set()

    trial.proxy.on("GET", TOO_BUSY, when=unreadable)
    found = trial.proxy.on("GET", first_answer, when=lambda request: trial.mine(request) and _is_find(request), count=1)
    intent_id = trial.create(OPEN, "2")
    sent.wait_for_hits()
    trial.cancel(intent_id)
    time.sleep(GIVEN_UP_SECONDS)
    trial.expect(trial.status(intent_id) == "PENDING_CANCEL", f"given up without an answer: {trial.state(intent_id)}")
    readable.set()
    found.wait_for_hits()
    trial.wait_for_status(intent_id, "CANCELED")
    trial.wait(lambda: trial.orders(intent_id), "the late order at the broker")
    trial.wait(lambda: not trial.open_orders(intent_id), "the order is canceled at the broker")
    codes = trial.reason_codes(intent_id)
    trial.expect("ORDER_AFTER_END" not in codes, f"it was given up at the first answer: {codes}")


@scenario()
def refused_resend(trial: Trial) -> None:
    """A resend is refused because the first send has used up the money: the order is found, not called REJECTED."""
    first, blocked = Hold(cut=True), threading.Event()
    sent = trial.on_line("POST", first, count=1)

    def refuse(exchange: Exchange) -> None:
        first.release()
        trial.wait(lambda: sent.hits[0].status, "the first send has arrived")
        answer(403, {"code": 40310000, "message": "insufficient buying power"})(exchange)

    resent = trial.on_line("POST", refuse, count=1)
    trial.proxy.on(
        "GET",
        TOO_BUSY,
        when=lambda request: trial.mine(request) and path_is("/v2/orders")(request) and not blocked.is_set(),
    )
    with trial.streams.holding(trial.symbol):
        intent_id = trial.create(trial.symbol, "2", limit="1")
        resent.wait_for_hits()
        status = trial.wait_for_status(intent_id, "ACCEPTED", "FILLED", "REJECTED")
    blocked.set()
    trial.expect(status != "REJECTED", f"it is {trial.state(intent_id)}, and at the broker {trial.orders(intent_id)}")
    trial.expect(len(trial.orders(intent_id)) == 1, f"orders at the broker: {trial.orders(intent_id)}")


@scenario()
def busy_find_after_duplicate(trial: Trial) -> None:
    """The network doubles a POST and the broker is too busy (429) to say what it has: a CANCEL reaches the order."""

    def doubled(exchange: Exchange) -> None:
        exchange.forward()
        passing(exchange)

    sent, canceled = trial.on_line("POST", doubled, count=1), threading.Event()

    def unanswered(request: Request) -> bool:
        """Everything after the POST; once it is canceled only the list, which would show the order by itself."""
        listing = path_is("/v2/orders")(request)
        return trial.mine(request) and bool(sent.hits) and (listing or not canceled.is_set())

    queries = trial.proxy.on("GET", TOO_BUSY, when=unanswered)
    with trial.streams.holding(trial.symbol):
        intent_id = trial.create(trial.symbol, "2", limit="1")
        trial.wait(lambda: any(_is_find(request) for request in queries.hits), "the duplicate is queried at the broker")
        trial.cancel(intent_id)
        canceled.set()
        trial.wait_for_status(intent_id, "CANCELED")
    state = trial.state(intent_id)
    trial.expect(not trial.open_orders(intent_id), f"{state} here, at the broker {trial.open_orders(intent_id)}")
    trial.expect(state["reason_code"] != "CANCELED_BEFORE_SENT", f"an order existed, and the intent says {state}")


@scenario(alone=True)
def frozen_before_the_write(trial: Trial) -> None:
    """An executor freezes with its request half way and loses its lease; another takes over: one order."""
    one, other = (child.pid for child in trial.on.of("executor"))
    freezer = trial.on.freezer
    freezer.freeze("executor", [other], None)
    hold = Hold()
    sent = trial.on_line("POST", hold, count=1)
    intent_id = trial.create(OPEN, "2")
    sent.wait_for_hits()
    freezer.freeze("executor", [one], None)
    freezer.thaw([other])
    trial.wait_for_status(intent_id, "ACCEPTED")
    freezer.freeze("executor", [other], None)
    hold.release()
    freezer.thaw([one])
    trial.wait(lambda: sent.hits[0].status, "the frozen request has arrived")
    trial.note(f"the broker answers the frozen request with {sent.hits[0].status}")
    next_id = trial.create(OPEN, "2")
    trial.wait_for_status(next_id, "ACCEPTED")  # so the one that was frozen is past the first
    freezer.thaw([other])
    trial.expect(len(trial.orders(intent_id)) == 1, f"orders at the broker: {trial.orders(intent_id)}")
    state = trial.state(intent_id)
    trial.expect((state["status"], state["outcome"]) == ("ACCEPTED", None), f"it is {state}")


@scenario(alone=True)
def duplicate_order(trial: Trial) -> None:
    """A broker takes a client order id twice, and the first POST comes last: reported, canceled, its fills counted."""
    _accept_duplicates(trial, wanted=True)
    try:
        hold = Hold(cut=True)
        sent = trial.on_line("POST", hold, count=1)
        intent_id = trial.create("SIM.TRICKLE5", "4000")
        sent.wait_for_hits()
        trial.wait_for_status(intent_id, "ACCEPTED", "PARTIALLY_FILLED")
        hold.release()
        trial.wait(lambda: len(trial.orders(intent_id)) == 2, "two orders at the broker")
        trial.wait(lambda: "DUPLICATE_ORDER" in trial.reason_codes(intent_id), "an event DUPLICATE_ORDER")
        trial.wait(lambda: len(trial.open_orders(intent_id)) == 1, "one of the two is canceled")
        trial.cancel(intent_id)
        trial.wait_for_status(intent_id, "CANCELED")
        trial.expect(not trial.open_orders(intent_id), f"still open at the broker: {trial.open_orders(intent_id)}")
        trial.expect_fills_agree(intent_id)
    finally:
        _accept_duplicates(trial, wanted=False)


def _accept_duplicates(trial: Trial, *, wanted: bool) -> None:
    body = {"accept_duplicate_client_order_ids": wanted}
    trial.on.at_broker("PUT", "/faults", json=body).raise_for_status()
