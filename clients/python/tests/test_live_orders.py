"""Orders through the client, on a whole platform."""

from decimal import Decimal
from uuid import uuid4

import pytest
from sdk_platform import Platform

import tip_client as tip

OPEN = "SIM.OPEN"
"""A symbol whose orders stay open at the paper broker."""


def test_an_order_is_bought_and_filled(client: tip.Client, symbol: str) -> None:
    client_id = f"alpha-{uuid4().hex[:8]}"

    order = client.buy(symbol, 2, client_id=client_id, tags=["alpha"]).wait("FILLED", timeout=60)

    assert (order.filled_quantity, order.leaves_quantity, order.is_open) == (Decimal(2), Decimal(0), False)
    assert order.average_fill_price and order.average_fill_price > 0
    assert (order.client_id, order.tags, order.order_side) == (client_id, ("alpha",), tip.Side.BUY)
    assert order.created_at.tzinfo is not None


@pytest.mark.parametrize(
    "order",
    [
        tip.Market(OPEN, "BUY", 1, time_in_force="DAY"),
        tip.Limit(OPEN, "BUY", "1.5", limit="10.25", time_in_force="GTC"),
        tip.Stop(OPEN, "SELL", 1, stop=Decimal(5), time_in_force="DAY"),
        tip.StopLimit(OPEN, "SELL", 1, stop="5", limit="4.5", time_in_force="GTC"),
        tip.TrailingStop(OPEN, "SELL", 1, trail="5", time_in_force="GTC"),
        tip.TrailingStop(OPEN, "SELL", 1, trail_percent="2.5", time_in_force="DAY"),
    ],
    ids=lambda order: type(order).__name__,
)
def test_each_kind_of_order_is_recorded_as_it_was_made(client: tip.Client, order: tip.NewOrder) -> None:
    submitted = client.submit(order)

    assert client.order(submitted.intent_id).spec == order.spec == submitted.spec
    submitted.cancel()


def test_an_order_for_so_much_money_is_filled_for_it(client: tip.Client, symbol: str) -> None:
    order = client.buy(symbol, notional="500").wait("FILLED", timeout=60)

    assert order.spec.notional == 500 and order.spec.quantity is None
    assert order.average_fill_price and abs(order.filled_quantity * order.average_fill_price - 500) < Decimal("0.01")


def test_an_order_for_extended_hours_is_listed_as_one(client: tip.Client) -> None:
    order = client.buy(OPEN, 1, limit="1.00", extended_hours=True)

    listed = {found.intent_id: found.extended_hours for found in client.orders(status="open")}
    assert (order.extended_hours, client.order(order.intent_id).extended_hours) == (True, True)
    assert listed[order.intent_id] is True
    order.cancel()


def test_an_open_order_is_replaced_and_canceled(client: tip.Client) -> None:
    order = client.buy(OPEN, 1, limit="1.00").wait("ACCEPTED", timeout=60)

    order = order.replace(limit="1.10", quantity=2).wait("ACCEPTED", timeout=60)
    assert (order.spec.limit_price, order.leaves_quantity) == (Decimal("1.10"), Decimal(2))

    ended = order.cancel().wait(timeout=60)
    assert ended.status is tip.Status.CANCELED
    assert [action.command.type for action in ended.history()] == ["CREATE", "REPLACE", "CANCEL"]
    story = list(ended.timeline())
    assert [entry.command.type for entry in story if entry.command] == ["CREATE", "REPLACE", "CANCEL"]
    assert "create" in [entry.call.verb for entry in story if entry.call]
    assert any(entry.report and entry.report.to_status is tip.Status.CANCELED for entry in story)
    read = client.order(order.intent_id)
    assert (read.spec, read.status, read.created_at) == (order.spec, "CANCELED", order.created_at)


def test_waiting_ends_in_time_and_the_order_goes_on(client: tip.Client) -> None:
    order = client.buy(OPEN, 1, limit="1.00")

    with pytest.raises(tip.Timeout):
        order.wait("FILLED", timeout=0.5)

    assert order.refresh().is_open
    order.cancel()


def test_waiting_for_what_can_no_longer_be_says_how_the_order_ended(client: tip.Client) -> None:
    order = client.buy(OPEN, 1, limit="1.00")
    order.cancel()

    with pytest.raises(tip.OrderEnded) as raised:
        order.wait("FILLED", timeout=60)

    assert raised.value.order.status == "CANCELED"


def test_orders_are_found_by_filters_over_pages(platform: Platform, own_account: str, symbol: str) -> None:
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        made = [client.buy(symbol, quantity, tags=["even" if quantity % 2 == 0 else "odd"]) for quantity in range(1, 6)]
        for order in made:
            order.wait(timeout=60)

        newest = list(client.orders(symbol=symbol, newest_first=True, page_size=2))
        even = list(client.orders(tag="even", status="closed"))

        assert [order.intent_id for order in newest] == [order.intent_id for order in reversed(made)]
        assert [order.spec.quantity for order in even] == [2, 4]
        assert list(client.orders(status="open")) == []
        assert len(list(client.history(page_size=2))) == 5


def test_a_client_id_finds_its_order_and_is_taken(client: tip.Client, symbol: str) -> None:
    client_id = uuid4().hex
    order = client.buy(symbol, 1, client_id=client_id)

    assert client.order_by_client_id(client_id).intent_id == order.intent_id
    with pytest.raises(tip.ClientIdTaken) as raised:
        client.buy(symbol, 2, client_id=client_id)
    assert raised.value.intent_id == order.intent_id
    with pytest.raises(tip.NotFound):
        client.order_by_client_id("nobody's")


def test_the_same_idempotency_key_makes_one_order(client: tip.Client, symbol: str) -> None:
    key = uuid4().hex

    first, second = (client.buy(symbol, 1, idempotency_key=key) for _ in range(2))

    assert first.intent_id == second.intent_id
    with pytest.raises(tip.IdempotencyKeyReused):
        client.buy(symbol, 2, idempotency_key=key)


def test_a_dry_run_writes_nothing(client: tip.Client, symbol: str) -> None:
    action = client.dry_run(tip.Market(symbol, "BUY", 1))

    assert action.controls.decision is tip.Decision.ALLOWED
    assert list(client.orders(symbol=symbol)) == []


def test_a_batch_answers_for_each_order(client: tip.Client, symbol: str) -> None:
    results = client.submit_batch([tip.Market(symbol, "BUY", 1), tip.Market("no symbol", "BUY", 1)])

    assert [result.status for result in results] == [201, 422]
    with pytest.raises(tip.BatchRejected):
        client.submit_batch([tip.Market(symbol, "BUY", 1), tip.Market("no symbol", "BUY", 1)], atomic=True)


def test_what_controls_refuse_says_why(platform: Platform, client: tip.Client, symbol: str) -> None:
    with platform.admin() as admin:
        admin.controls.disable_symbol(symbol, reason="earnings")

    with pytest.raises(tip.ControlRejected) as raised:
        client.buy(symbol, 1)

    refusal = raised.value
    assert [reason.code for reason in refusal.reasons] == ["SYMBOL_DISABLED"]
    assert refusal.request_id
    [refused] = client.refusals(symbol=symbol)
    assert (refused.request_id, refused.spec and refused.spec.quantity) == (refusal.request_id, 1)


def test_a_wrong_field_is_pointed_at(client: tip.Client) -> None:
    with pytest.raises(tip.InvalidRequest) as raised:
        client.buy("AAPL", -1)

    assert raised.value.pointer == "/command/payload/spec/Market/quantity"
    assert raised.value.code == "invalid"


def test_all_open_orders_are_canceled_and_positions_closed(platform: Platform, own_account: str, symbol: str) -> None:
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        client.buy(symbol, 3).wait("FILLED", timeout=60)
        resting = client.buy(OPEN, 1, limit="1.00").wait("ACCEPTED", timeout=60)

        canceled = client.cancel_all(reason="END_OF_DAY").wait(timeout=60)
        assert (canceled.status, canceled.total, resting.refresh().status) == ("COMPLETED", 1, "CANCELED")

        closed = client.close_positions(symbol=symbol).wait(timeout=60)
        assert closed.status is tip.BulkStatus.COMPLETED
        assert [position.quantity for position in client.positions() if position.symbol == symbol] in ([], [0])


def test_the_log_is_verified_and_its_statement_is_read(platform: Platform, own_account: str, symbol: str) -> None:
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        client.buy(symbol, 1).wait("FILLED", timeout=60)

        verified = client.verify()
        assert verified.valid and verified.checked == verified.last_sequence > 1
        assert client.statistics("last_hour").total_intents == 1
        statement = b"".join(signed_statement(client))
        assert statement.count(b"\n") >= 3 and own_account.encode() in statement


def signed_statement(client: tip.Client) -> list[bytes]:
    """Once the log is signed for the first time."""
    from tip_testing.waiting import eventually

    def read() -> list[bytes] | None:
        try:
            return list(client.statement())
        except tip.Conflict:
            return None

    return eventually(read)
