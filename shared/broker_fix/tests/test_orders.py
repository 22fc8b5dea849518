"""What the broker's messages make of orders."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tip_broker_fix.gateway import order_messages, orders, tags
from tip_broker_fix.gateway.codec import Message
from tip_broker_fix.gateway.orders import Change, Order

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SENT = Order("tip-1", "ACC1", "OPEN", "buy", "limit", "day", Decimal(10), NOW, NOW, Decimal(5), number=7)
WORKING = replace(SENT, status="new", order_id="B1")


def report(kind: str, status: str, filled: str = "0", name: str = "tip-1", **more: str) -> Message:
    values = {35: "8", 11: name, 37: "B1", 17: f"E{filled}", 150: kind, 39: status, 14: filled, 6: "20", 38: "10"}
    return Message("8", values | {int(tag.removeprefix("tag")): value for tag, value in more.items()})


def read(message: Message, *known: Order) -> list[Change]:
    return orders.read(message, {order.client_order_id: order for order in known}.get, NOW)


def after(message: Message, *known: Order) -> Order:
    return read(message, *known)[-1].order


def test_a_fill_is_told_with_its_id() -> None:
    [change] = read(report("F", "1", "4", tag32="4", tag31="20"), WORKING)

    assert (change.event, change.fill) == ("partial_fill", orders.Fill("E4", Decimal(4), Decimal(20)))
    assert (change.order.status, change.order.filled, change.order.average) == ("partially_filled", 4, 20)


@pytest.mark.parametrize(
    "earlier", [report("0", "0"), report("F", "1", "4", tag32="4", tag31="20")], ids=["new", "fill"]
)
def test_what_is_told_once_more_changes_nothing(earlier: Message) -> None:
    filled = replace(WORKING, status="filled", filled=Decimal(10), average=Decimal(20))

    assert after(earlier, filled) == filled


def test_a_fill_after_a_cancel_counts() -> None:
    canceled = replace(WORKING, status="canceled")

    assert after(report("F", "2", "10", tag32="10", tag31="20"), canceled).status == "filled"


def test_an_absence_counts_only_as_an_answer_to_what_was_asked_since_the_order_was_sent() -> None:
    absent = {"tag103": "5", "tag58": "unknown order"}

    assert read(report("I", "8", tag790="6", **absent), SENT) == []
    assert read(report("I", "8", **absent), SENT) == []
    assert after(report("I", "8", tag790="7", **absent), SENT).status == orders.ABSENT


def test_an_order_that_is_refused_at_once_never_was_one() -> None:
    refused = after(report("8", "8", tag58="no money"), SENT)

    assert (refused.status, refused.reason) == (orders.REFUSED, "no money")


def replacement(quantity: str = "6") -> Order:
    return replace(SENT, client_order_id="tip-2", replaces="tip-1", quantity=Decimal(quantity))


def test_a_replacement_begins_where_the_old_order_ended() -> None:
    old = replace(WORKING, status="partially_filled", filled=Decimal(4), average=Decimal(20))

    changes = read(report("5", "1", "4", name="tip-2", tag41="tip-1"), old, replacement())

    ended, new = (change.order for change in changes)
    assert (ended.status, ended.replaced_by, ended.filled) == ("replaced", "tip-2", 4)
    assert (new.filled, new.base, new.quantity, new.average) == (0, 4, 6, None)


def test_what_was_filled_while_it_was_replaced_is_the_old_orders() -> None:
    old = replace(WORKING, status="partially_filled", filled=Decimal(4), average=Decimal(20))

    ended, new = (
        change.order for change in read(report("5", "1", "5", name="tip-2", tag41="tip-1"), old, replacement())
    )

    assert (ended.filled, new.filled, new.quantity) == (5, 0, 5)


def test_a_replacement_whose_answer_was_missed_is_seen_by_its_status() -> None:
    old = replace(WORKING, status="partially_filled", filled=Decimal(4), average=Decimal(20))

    ended, new = (change.order for change in read(report("I", "1", "7", name="tip-2"), old, replacement()))

    assert (ended.status, ended.filled) == ("replaced", 4)
    assert (new.status, new.filled, new.average) == ("partially_filled", 3, 20)


def test_a_replacement_that_is_rejected_never_was_and_the_old_order_stands() -> None:
    rejected = Message("9", {35: "9", 11: "tip-2", 41: "tip-1", 39: "0", 434: "2", 58: "too late"})

    new, old = (change.order for change in read(rejected, replace(WORKING, status="pending_replace"), replacement()))

    assert (new.status, new.reason, old.status) == (orders.REFUSED, "too late", "new")


@pytest.mark.parametrize("kind", ["9", "j", "3"])
def test_a_cancel_that_is_rejected_leaves_the_order_as_it_is(kind: str) -> None:
    canceling = replace(WORKING, cancels=2)
    rejected = Message(kind, {35: kind, 11: "tip-1.c2", 41: "tip-1", 39: "0", 434: "1", 58: "too late"})

    order = after(rejected, canceling)

    assert (order.status, order.rejected_cancel, order.reason) == ("new", 2, "too late")


def test_a_message_that_the_broker_did_not_read_refuses_its_order() -> None:
    unread = {35: "j", 379: "tip-1", 58: "not supported"}

    assert after(Message("j", {**unread, 372: "D"}), SENT).status == orders.REFUSED


@pytest.mark.parametrize("unread", [{372: "H"}, {372: "AF"}, {}], ids=["query", "mass query", "unknown"])
def test_a_query_that_the_broker_did_not_read_refuses_no_order(unread: dict[int, str]) -> None:
    assert read(Message("j", {35: "j", 379: "tip-1", 58: "not supported", **unread}), SENT) == []


def test_a_rejection_as_a_duplicate_proves_nothing() -> None:
    assert read(report("8", "8", tag103="6"), SENT) == []


@pytest.mark.parametrize("amount", ["NaN", "-1", "1e99", "much", "", "9" * 50])
def test_an_amount_that_is_none_changes_no_total(amount: str) -> None:
    assert after(report("0", "0", amount), WORKING).filled == 0


def test_a_message_about_nobodys_order_changes_nothing() -> None:
    assert read(report("0", "0", name="another"), WORKING) == [] and read(Message("8", {35: "8"}), WORKING) == []


def test_an_order_that_is_sent_again_is_marked_so() -> None:
    absent = replace(SENT, status=orders.ABSENT)
    for first, again in (
        (order_messages.new_order(SENT, NOW), order_messages.new_order(absent, NOW)),
        (order_messages.replacement(SENT, WORKING, NOW), order_messages.replacement(absent, WORKING, NOW)),
    ):
        assert again == [(tags.POSS_RESEND, "Y"), *first]


def test_a_replacement_is_for_the_whole_chain() -> None:
    old = replace(WORKING, base=Decimal(2), filled=Decimal(3))

    sent = dict(order_messages.replacement(replacement("6"), old, NOW))

    assert (sent[tags.ORDER_QTY], sent[tags.ORIG_CL_ORD_ID], sent[tags.ORDER_ID]) == ("11", "tip-1", "B1")
