"""A broker that shows late what it has done, an order that surfaces in the middle of another command, a wrong 401."""

import json
import threading

from fault_contract import TERMINAL
from fault_proxy import Exchange, Hold, Request, answer, cut_after, passing, path_is, rewrite
from fault_scenario import scenario
from fault_trial import Trial
from scenarios_credentials import tip
from scenarios_fills import filling, partly_filled
from scenarios_late import FIND, surfaces_after_the_end

NOT_FOUND = answer(404, {"code": 40410000, "message": "order not found"})
REFUSED = answer(401, {"code": 40110000, "message": "request is not authorized"})
REFUSALS = 3
"""More than there are executors: each of them has met one."""


@scenario()
def filled_by_the_replaced_order(trial: Trial) -> None:
    """The old order's last fills come when its replacement is open, and make the total: the new one is canceled."""
    intent_id = partly_filled(trial)
    (old,) = trial.orders(intent_id)
    released = threading.Event()
    sent = trial.on_line("PATCH", filling(trial, "15"), count=1)

    def is_behind(request: Request) -> bool:
        return path_is(f"/v2/orders/{old['order_id']}")(request) and bool(sent.hits) and not released.is_set()

    earlier = {"status": "pending_replace", "filled_qty": "5", "replaced_by": None}
    trial.proxy.on("GET", rewrite(lambda body: json.dumps(json.loads(body) | earlier).encode()), when=is_behind)
    with trial.streams.holding(trial.symbol):
        trial.replace(intent_id, "20", limit="10")
        trial.wait(lambda: len(trial.orders(intent_id)) == 2, "the replacement at the broker")
        # Now and then a list of the broker's shows the last fills before the order itself does: then it is FILLED.
        trial.wait_for_status(intent_id, "ACCEPTED", "PARTIALLY_FILLED", "FILLED")
        released.set()
        trial.wait_for_status(intent_id, "FILLED")
        trial.wait(lambda: not trial.open_orders(intent_id), "the new order is canceled at the broker", 30)
    trial.wait(lambda: "ORDER_AFTER_END" in trial.reason_codes(intent_id), "an event ORDER_AFTER_END")
    trial.expect_fills_agree(intent_id)
    trial.expect(trial.filled(intent_id) == 20, f"{trial.filled(intent_id)} of 20 were filled")


@scenario()
def second_replace_meets_the_first(trial: Trial) -> None:
    """A REPLACE that a HALT stopped arrives after all, just before the next one: it is not taken for that one."""
    intent_id = trial.create(trial.symbol, "40", limit="1")
    trial.wait_for_status(intent_id, "ACCEPTED")
    first = Hold(cut=True)
    sent = trial.on_line("PATCH", first)
    trial.replace(intent_id, "20", limit="1")
    sent.wait_for_hits()
    trial.halt()
    trial.wait_for_status(intent_id, "ACCEPTED")
    trial.lift_halt()
    trial.proxy.off(sent)

    def meets(exchange: Exchange) -> None:
        first.release()
        trial.wait(lambda: sent.hits[0].status, "the first REPLACE has arrived")
        passing(exchange)

    second = trial.on_line("PATCH", meets, count=1)
    with trial.streams.holding(trial.symbol):
        trial.replace(intent_id, "30", limit="1")
        second.wait_for_hits()
        trial.wait_for_status(intent_id, *TERMINAL)
    trial.wait(lambda: not trial.open_orders(intent_id), "the order of the first REPLACE is canceled at the broker")
    trial.note(f"the broker answers the second REPLACE with {second.hits[0].status}")
    quantities = {event["quantity"] for event in trial.events(intent_id)}
    trial.expect(quantities == {"40"}, f"no REPLACE was done as requested, and the events say {quantities}")
    trial.expect("REPLACED_LATE" in trial.reason_codes(intent_id), f"the codes are {trial.reason_codes(intent_id)}")
    trial.wait(lambda: intent_id not in tip(trial, "orders", "unresolved"), "nothing is left to be resolved", 30)


@scenario()
def shown_late(trial: Trial) -> None:
    """A broker has the order, refuses its id a second time and hides it for a while: reported, then canceled."""
    shown = threading.Event()

    def blind(request: Request) -> bool:
        return trial.mine(request) and not shown.is_set()

    trial.proxy.on("GET", NOT_FOUND, when=lambda request: blind(request) and path_is(FIND)(request))
    nothing = rewrite(lambda _body: b"[]")
    trial.proxy.on("GET", nothing, when=lambda request: blind(request) and path_is("/v2/orders")(request))
    sent = trial.on_line("POST", cut_after, count=1)
    resent = trial.on_line("POST", passing)
    with trial.streams.holding(trial.symbol):
        intent_id = trial.create(trial.symbol, "2", limit="1")
        sent.wait_for_hits()
        resent.wait_for_hits()
        trial.cancel(intent_id)
        trial.wait_for_status(intent_id, "CANCELED")
        shown.set()
        surfaces_after_the_end(trial, intent_id)


@scenario()
def refused_by_mistake(trial: Trial) -> None:
    """A broker answers 401 to every executor once; the account has no credential that could be changed: it goes on."""
    refused = trial.on_line("POST", REFUSED, count=REFUSALS)
    intent_id = trial.create(trial.symbol, "2", limit="1")
    refused.wait_for_hits()
    trial.wait_for_status(intent_id, "ACCEPTED")
    trial.expect(len(trial.orders(intent_id)) == 1, f"orders at the broker: {trial.orders(intent_id)}")
    trial.expect(trial.state(intent_id)["reason_code"] is None, f"it is {trial.state(intent_id)}")
