"""Every intent against the broker's storage, order by order and execution by execution."""

from collections import Counter, defaultdict
from datetime import datetime
from decimal import Decimal

from fault_check_controls import check_refused_at_sending
from fault_evidence import Evidence
from fault_findings import Findings
from fault_records import AccountLog, Json, Order, Story

NEVER_SENT, NOT_THERE = "CANCELED_BEFORE_SENT", "NOT_FOUND_AT_BROKER"
WAITING = frozenset({"CREDENTIAL_MISSING", "CREDENTIAL_INVALID", "OPERATOR_REQUIRED"})
"""Why an intent may wait for a person, in accounts whose credentials were changed or that were deleted."""
AFTER_END, DUPLICATE, OVERFILLED = "ORDER_AFTER_END", "DUPLICATE_ORDER", "OVERFILLED"
OF_A_FILLED = frozenset({None, AFTER_END, DUPLICATE, OVERFILLED})
KINDS = {"Market": "market", "Limit": "limit", "Stop": "stop", "StopLimit": "stop_limit",
         "TrailingStop": "trailing_stop"}  # fmt: skip
PRICES = {"limit_price": "limit_price", "stop_price": "stop_price", "trail_amount": "trail_price",
          "trail_percent": "trail_percent"}  # fmt: skip
"""Our words and the broker's."""
LATE_SECONDS = 1.0
"""The clocks are one clock; this much may lie between an order's birth and the note of an end that did not see it."""


def check_orders(evidence: Evidence, log: AccountLog, findings: Findings) -> None:
    for story in log.stories.values():
        found = Findings()
        _check_story(evidence, story, found)
        for finding in found.found:
            findings.about(log.account, story.id).add(finding.rule, f"{finding.detail} | {story.summary()}")


def _check_story(evidence: Evidence, story: Story, findings: Findings) -> None:
    _check_one_order_each(evidence, story, findings)
    _check_attributes(story, findings)
    _check_order_of_commands(story, findings)
    if _waits_for_a_person(evidence, story):
        return
    _check_settled(story, findings)
    _check_fills(story, findings)
    _check_trades(story, findings)
    _check_end(story, findings)
    _check_surfaced(story, findings)
    _check_reason(evidence, story, findings)
    check_refused_at_sending(evidence, story, findings)


def _waits_for_a_person(evidence: Evidence, story: Story) -> bool:
    """What can no longer be queried stays unknown and says so; whoever does not say so has to agree with the broker."""
    touched = story.account in evidence.moved or story.account in evidence.deleted
    return touched and not story.ended and story.row["reason_code"] in WAITING


def _check_one_order_each(evidence: Evidence, story: Story, findings: Findings) -> None:
    for action, orders in story.orders:
        places = {order.account_id for order in orders}
        findings.expect(len(places) < 2, "one action has orders in two accounts at the broker", action["id"])
        if len(orders) < 2:
            continue
        reported = DUPLICATE in story.reasons()
        findings.expect(
            evidence.duplicates_accepted and reported,
            "more than one order for one action",
            f"{action['id']} has {len(orders)}{'' if reported else ' and no event says so'}",
        )
        working = [order for order in orders if order.is_open]
        findings.expect(len(working) < 2, "two open orders for one action", action["id"])


def _check_attributes(story: Story, findings: Findings) -> None:
    for action, orders in story.orders:
        [(kind, terms)] = action["spec"].items()
        requested = (action["symbol"], action["order_side"].lower(), KINDS[kind])
        for order in orders:
            got = (order.symbol, order.side, order.kind)
            findings.expect(got == requested, "an order is not what was requested", f"{got} for {requested}")
            for name, theirs in PRICES.items():
                if name == "stop_price" and kind == "TrailingStop":
                    continue  # it trails
                got_price, wanted = order.row.get(theirs), terms.get(name)
                same = _number(got_price) == _number(wanted)
                findings.expect(same, "an order has another price", f"{name} {got_price} for {wanted}")
            if "notional" in terms:  # the broker's storage has the quantity that it made of it
                continue
            more = Decimal(order.qty) > Decimal(terms["quantity"])
            findings.expect(not more, "an order is larger than what was requested", f"{order} for {terms['quantity']}")


def _number(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _check_order_of_commands(story: Story, findings: Findings) -> None:
    places = [orders[0].sequence for _action, orders in story.orders if orders]
    findings.expect(places == sorted(places), "orders of one intent are out of order", places)


def _check_settled(story: Story, findings: Findings) -> None:
    row = story.row
    findings.expect(row["outcome"] is None, "the outcome stays unknown", row["reason_code"])
    pending = row["status"] in ("PENDING", "SUBMITTED", "PENDING_REPLACE", "PENDING_CANCEL")
    findings.expect(not pending, "a command is never settled", row["status"])


def _check_fills(story: Story, findings: Findings) -> None:
    row = story.row
    at_broker = sum((order.filled for order in story.at_broker), Decimal(0))
    findings.expect(
        row["filled_quantity"] == at_broker,
        "filled differs from the broker",
        f"{row['filled_quantity']:f} here, {at_broker:f} there",
    )
    reported = OVERFILLED in story.reasons()
    findings.expect(
        at_broker <= row["quantity"] or reported,
        "more is filled than was requested, and no event says so",
        f"{at_broker:f} of {row['quantity']:f}",
    )
    if row["status"] == "FILLED":
        findings.expect(
            at_broker >= row["quantity"], "FILLED, but not all of it", f"{at_broker:f} of {row['quantity']:f}"
        )
    value = sum(
        (Decimal(fill["qty"]) * Decimal(fill["price"]) for order in story.at_broker for fill in order.executions),
        Decimal(0),
    )
    average = row["average_fill_price"]
    if at_broker and average is not None:
        findings.expect(
            abs(average - value / at_broker) < Decimal("0.00001"),
            "another average price than the broker's",
            f"{average} here, {value / at_broker} there",
        )


def _check_trades(story: Story, findings: Findings) -> None:
    """A trade that names an execution is that execution; what an order has filled is the sum of its trades."""
    executions = {(order.order_id, fill["id"]): fill for order in story.at_broker for fill in order.executions}
    homes = {fill["id"]: order.order_id for order in story.at_broker for fill in order.executions}
    seen: Counter[tuple[str, str]] = Counter()
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for entry in story.trades:
        trade = entry.payload
        sums[str(trade["broker_order_id"])] += Decimal(trade["quantity"])
        if trade.get("execution_id") is None:
            continue
        place = (str(trade["broker_order_id"]), str(trade["execution_id"]))
        seen[place] += 1
        fill = executions.get(place)
        if fill is None:
            home = homes.get(place[1], "no order of this intent")
            findings.add("a trade names an execution of another order", f"{entry}: it is of {home}")
        elif (Decimal(fill["qty"]), Decimal(fill["price"])) != (Decimal(trade["quantity"]), Decimal(trade["price"])):
            findings.add("a trade differs from its execution", f"{entry}: {fill['qty']} at {fill['price']}")
    for place, count in seen.items():
        findings.expect(count == 1, "an execution is reported twice", place)
    for order in story.at_broker:
        findings.expect(
            sums[order.order_id] == order.filled,
            "the trades of an order are not its executions",
            f"{order}: trades {sums[order.order_id]:f}",
        )


def _check_end(story: Story, findings: Findings) -> None:
    working = [order for order in story.at_broker if order.is_open]
    row = story.row
    if story.ended:
        findings.expect(not working, "ended here, open at the broker", ", ".join(map(str, working)))
    elif not working:
        findings.add("open here, not at the broker", row["status"])
    else:
        findings.expect(len(working) == 1, "two open orders", ", ".join(map(str, working)))
        filled = sum((order.filled for order in story.at_broker), Decimal(0))
        leaves = row["quantity"] - filled
        same = working[0].remaining == leaves
        findings.expect(same, "the open order is not for what remains", f"{working[0]}, {leaves:f} remain")
    if row["status"] == "REJECTED":
        good = all(order.status == "rejected" for order in story.at_broker)
        findings.expect(good, "REJECTED here, an order at the broker")
    if not story.at_broker and row["status"] in ("FILLED", "CANCELED", "ACCEPTED", "PARTIALLY_FILLED"):
        explained = row["status"] == "CANCELED" and row["reason_code"] in (NEVER_SENT, NOT_THERE)
        findings.expect(explained, "no order at the broker, and no reason", row["status"])


def _check_surfaced(story: Story, findings: Findings) -> None:
    """An order that came to be after the intent had ended is reported, and not left open."""
    end = next(
        (
            entry
            for entry in story.entries
            if entry.to_status
            and story.ended
            and entry.to_status in ("CANCELED", "DENIED", "EXPIRED", "REJECTED", "FAILED")
        ),
        None,
    )
    if end is None or end.written_at is None:
        return
    for order in story.at_broker:
        born = datetime.fromisoformat(order.created_at)
        if (born - end.written_at).total_seconds() > LATE_SECONDS:
            findings.expect(
                AFTER_END in story.reasons(),
                "an order surfaced after the end, and no event says so",
                f"{order} at {born:%M:%S.%f}, ended {end.written_at:%M:%S.%f}",
            )


def _check_reason(evidence: Evidence, story: Story, findings: Findings) -> None:
    code, row = story.row["reason_code"], story.row
    if code == NEVER_SENT:
        findings.expect(not story.at_broker, "CANCELED_BEFORE_SENT, but it was sent")
    if code == NOT_THERE:
        findings.expect(not story.at_broker, "NOT_FOUND_AT_BROKER, but it is there")
    if row["status"] == "FILLED":
        findings.expect(code in OF_A_FILLED, "FILLED with a reason why not", code)
    if code in WAITING:
        findings.expect(False, "says that it waits, and does not", code)
    if code == "STALE_ORDER":
        findings.expect(_had(evidence, story, "symbol_time"), "STALE_ORDER, but no order could be stale")
    if code == "ACCOUNT_NOT_FOUND":
        findings.expect(story.account in evidence.deleted, "ACCOUNT_NOT_FOUND, but the account is there")
    for entry in story.events:
        reason = entry.payload.get("reason_code")
        if entry.to_status in ("DENIED", "EXPIRED", "REJECTED", "FAILED") and entry.from_status != entry.to_status:
            findings.expect(reason is not None or entry.to_status == "EXPIRED", "an end without a reason", entry)


def _had(evidence: Evidence, story: Story, control: str) -> bool:
    return any(
        change["control"] == control and change["account"] == story.account and change["symbol"] == story.row["symbol"]
        for change in evidence.controls
    )


def check_nobody_elses(evidence: Evidence, known: set[str], findings: Findings) -> None:
    """Every order at the broker belongs to an action of the log."""
    for name, orders in evidence.orders.items():
        findings.expect(name in known, "an order nobody requested", f"{orders[0]} {orders[0].created_at}")


def check_positions(evidence: Evidence, log: AccountLog, findings: Findings) -> None:
    """What the account holds, by the API and by the last event, is what the broker says it holds."""
    if log.deleted or not log.stories:
        return
    positions = {
        row["symbol"]: Decimal(row["quantity"])
        for row in evidence.get(f"/v1/accounts/{log.account}/positions").json()["data"]
    }
    places = {order.account_id for story in log.stories.values() for order in story.at_broker}
    if not places:
        return
    wanted = [_held(evidence.positions.get(place, {})) for place in sorted(places)]
    findings.expect(len(places) == 1 or log.account in evidence.moved, "an account trades in two at the broker", places)
    here = _held(positions)
    if log.account in evidence.moved:
        known = any(all(held.get(symbol) == qty for symbol, qty in here.items()) for held in [*wanted, {}])
        findings.expect(known, "positions are of no account at the broker", f"{here} and {wanted}")
        return
    for symbol in sorted(here.keys() | wanted[0].keys()):
        mine, theirs = here.get(symbol, Decimal(0)), wanted[0].get(symbol, Decimal(0))
        findings.expect(
            mine == theirs, "a position differs from the broker", f"{symbol}: {mine:f} here, {theirs:f} there"
        )
        logged = _last_logged(log, symbol)
        findings.expect(
            logged in (None, theirs),
            "the last BROKER_POSITION is not the position",
            f"{symbol}: {logged} logged, {theirs:f} there",
        )


def _held(positions: dict[str, Decimal]) -> dict[str, Decimal]:
    return {symbol: quantity for symbol, quantity in positions.items() if quantity}


def _last_logged(log: AccountLog, symbol: str) -> Decimal | None:
    for entry in reversed(log.entries):
        if entry.type == "BROKER_POSITION" and entry.payload["symbol"] == symbol:
            return Decimal(entry.payload["quantity"])
    return None


def totals(log: AccountLog) -> Json:
    """For the report."""
    orders: list[Order] = [order for story in log.stories.values() for order in story.at_broker]
    return {
        "intents": len(log.stories),
        "actions": sum(len(story.actions) for story in log.stories.values()),
        "events": len(log.entries),
        "orders": len(orders),
        "executions": sum(len(order.executions) for order in orders),
        "sent more than once": sum(order.posts > 1 for order in orders),
    }
