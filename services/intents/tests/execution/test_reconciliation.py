"""Streams and reconciliation: in the order of the updates, no faster than the broker wishes, and for everybody."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from intents.execution import reconciliation, recorder, store
from intents.execution.credentials import Credentials
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import Holdings, KnownOpenOrder, RestoredEpoch, WatchedAccount
from intents.execution.reconciler import Reconciler
from intents.execution.watches import Watch
from tip_brokers import Balance, Brokers, BrokerSettings, Execution, ListingTooLong, Order, OrderStatus, Position
from tip_testing.commands import create
from tip_testing.waiting import eventually

from ..broker_side import accept
from .conftest import give_credential


def filled(desk: Any, order: Order, total: int, position: int) -> BrokerReport:
    """Another 5 of the order, after which the account holds so many."""
    now = datetime.now(UTC)
    shown = replace(order, filled_quantity=Decimal(total), average_price=Decimal(1), updated_at=now)
    name = f"{order.broker_order_id}-{total}"
    execution = Execution(name, order.broker_order_id, Decimal(5), Decimal(1), now, Decimal(position))
    return BrokerReport(desk.account_id, shown, now, execution)


def test_updates_of_several_orders_are_recorded_in_the_order_they_came(desk):
    first, second = (accept(desk, desk.created(create("ABC"))["intent_id"], f"b{number}") for number in (1, 2))
    reports = [
        filled(desk, first, 5, position=5),
        filled(desk, second, 5, position=10),
        filled(desk, first, 10, position=15),
        filled(desk, second, 10, position=20),
    ]

    recorder.record(desk.deps.connections, reports)

    events = sorted(desk.rows("account_event"), key=lambda row: row["sequence"])
    positions = [row["payload"]["quantity"] for row in events if row["type"] == "BROKER_POSITION"]
    assert positions == ["5", "10", "15", "20"]
    assert [row["quantity"] for row in desk.rows("position")] == [20]


class Shown:
    """A broker that names fills otherwise when they are listed than in its stream."""

    def __init__(self, order: Order, executions: list[Execution]) -> None:
        self._order, self._executions = order, executions

    def open_orders(self) -> list[Order]:
        return [self._order]

    def executions(self, _after: datetime) -> list[Execution]:
        return self._executions


def known_open_orders(desk: Any) -> list[KnownOpenOrder]:
    with desk.deps.engine.connect() as tx:
        return list(store.begin_reading(tx, desk.account_id).orders)


def save_holdings(desk: Any, shown: list[Position], funds: Balance) -> int | None:
    """The broker reports these positions, with every fill that is recorded and no other."""
    with desk.deps.engine.begin() as tx:
        start = store.begin_reading(tx, desk.account_id)
        filled = {known.key: known.filled_quantity for known in start.orders}
        holdings = Holdings(shown, funds, start.began_at, start.sequence, filled, ())
        return store.save_holdings(tx, desk.account_id, holdings).head


def test_reconciliation_finds_what_the_stream_missed_and_counts_nothing_twice(desk):
    order = accept(desk, desk.created(create("ABC", "20"))["intent_id"], "b1")
    recorder.record(desk.deps.connections, [filled(desk, order, 5, position=5)])
    moment = datetime.now(UTC)
    listed = [Execution(f"listed-{number}", "b1", Decimal(5), Decimal(number), moment) for number in (1, 2, 3)]
    shown = replace(order, filled_quantity=Decimal(15), average_price=Decimal(2), updated_at=moment)

    known_orders = known_open_orders(desk)
    recorder.record(
        desk.deps.connections,
        reconciliation.AccountReconciliation(desk.account_id, Shown(shown, listed), known_orders).differences(),
    )

    trades = [row for row in desk.rows("account_event") if row["type"] == "BROKER_TRADE"]
    logged = {row["broker_execution_id"]: row["payload"]["quantity"] for row in trades}
    assert logged == {"b1-5": "5", "listed-2": "5", "listed-3": "5"}
    assert [row["filled_quantity"] for row in desk.rows("intent")] == [15]


class Busy:
    """A broker with more orders and fills than it lists at a time; none of its orders is open any more."""

    LISTED = 2

    def __init__(self, orders: list[Order], executions: list[Execution] | None = None) -> None:
        self._orders, self._executions = orders, executions or []
        self.queried: list[str] = []

    def open_orders(self) -> list[Order]:
        return []

    def orders(self, after: datetime) -> Iterator[Order]:
        made = [order for order in self._orders if order.created_at > after]
        yield from made[: self.LISTED]
        if len(made) > self.LISTED:
            raise ListingTooLong("listing_too_long")

    def executions(self, _after: datetime) -> Iterator[Execution]:
        yield from self._executions[: self.LISTED]
        raise ListingTooLong("listing_too_long")

    def order(self, broker_order_id: str) -> Order:
        self.queried.append(broker_order_id)
        return next(order for order in self._orders if order.broker_order_id == broker_order_id)


def ended_orders(number: int) -> list[Order]:
    """Made one after the other, two minutes apart."""
    begin = datetime.now(UTC) - timedelta(hours=1)
    moments = [begin + timedelta(minutes=2 * place) for place in range(number)]
    return [
        Order(f"tip-{place}", f"b{place}", OrderStatus.CANCELED, "ABC", "BUY", "Market", Decimal(1), Decimal(0), None,
              moment, moment)
        for place, moment in enumerate(moments)
    ]  # fmt: skip


def test_an_order_whose_fills_are_too_many_to_list_is_recorded_by_its_own_total(desk):
    order = accept(desk, desk.created(create("ABC", "20"))["intent_id"], "b1")
    moment = datetime.now(UTC)
    listed = [Execution(f"listed-{number}", "b1", Decimal(5), Decimal(2), moment) for number in range(3)]
    shown = replace(
        order, status=OrderStatus.FILLED, filled_quantity=Decimal(20), average_price=Decimal(2), updated_at=moment
    )

    known_orders = known_open_orders(desk)
    found = reconciliation.AccountReconciliation(desk.account_id, Busy([shown], listed), known_orders).differences()
    recorder.record(desk.deps.connections, found)

    [intent] = desk.rows("intent")
    assert (intent["status"], intent["filled_quantity"]) == ("FILLED", 20)
    trades = [row for row in desk.rows("account_event") if row["type"] == "BROKER_TRADE"]
    assert sum(Decimal(row["payload"]["quantity"]) for row in trades) == 20
    assert {"listed-0", "listed-1"} <= {row["broker_execution_id"] for row in trades}


def test_ended_orders_that_are_too_many_to_list_are_queried_one_by_one():
    ended = ended_orders(reconciliation.LIST_ABOVE + 1)
    broker = Busy(ended)
    known_orders = [
        KnownOpenOrder(order.client_order_id, order.broker_order_id, "WORKING", Decimal(0), order.created_at)
        for order in ended
    ]

    found = reconciliation.AccountReconciliation(uuid4(), broker, known_orders).differences()

    assert [report.order for report in found] == ended
    assert broker.queried == [order.broker_order_id for order in ended[Busy.LISTED :]]


def test_orders_made_since_a_restore_that_are_too_many_for_one_listing_are_adopted_by_several(desk):
    made, engine = ended_orders(5), desk.deps.engine
    desk.execute("INSERT INTO intents.broker_account (account_id) VALUES (:account_id)")
    credentials, records = Credentials(engine, "for-tests-only"), recorder.Recorder(desk.deps.connections)
    reconciler = Reconciler(engine, Brokers(BrokerSettings()), credentials, records, 5.0, streams=0)
    watch = Watch(WatchedAccount(desk.account_id, desk.organization.id, "paper", "paper", False, True))
    restored = RestoredEpoch(uuid4(), datetime.now(UTC))

    rounds = 0
    while desk.rows("broker_account")[0]["epoch"] != restored.epoch:
        account = reconciliation.AccountReconciliation(desk.account_id, Busy(made), [])
        reconciler._comparison._catch_up(watch, account, [], restored)
        rounds += 1

    assert rounds == 4
    assert {row["client_order_id"] for row in desk.rows("broker_order")} == {order.client_order_id for order in made}


def test_a_lease_of_an_account_is_written_again_only_when_half_of_it_is_over(desk):
    accept(desk, desk.created(create("SIM.OPEN"))["intent_id"], "b1")
    token = uuid4()

    def leased(seconds: float) -> Any:
        with desk.deps.engine.begin() as tx:
            watched = store.lease_accounts(tx, token, [], seconds, None)
        assert desk.account_id in [account.account_id for account in watched]
        return desk.execute("SELECT xmin::text FROM intents.broker_account WHERE account_id = :account_id").scalar_one()

    assert leased(600.0) == (first := leased(600.0))
    assert leased(6000.0) != first


def test_an_account_is_watched_until_the_broker_has_reported_how_its_last_fill_left_it(desk):
    """Its last order was filled, and whoever watched it died before reconciling."""
    order = accept(desk, desk.created(create("ABC", "5"))["intent_id"], "b1")
    now = datetime.now(UTC)
    ended = replace(
        order, status=OrderStatus.FILLED, filled_quantity=Decimal(5), average_price=Decimal(1), updated_at=now
    )
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, ended, now)])
    assert [row["status"] for row in desk.rows("intent")] == ["FILLED"]

    def is_watched() -> bool:
        with desk.deps.engine.begin() as tx:
            watched = store.lease_accounts(tx, uuid4(), [], 0.0, None)
        return desk.account_id in [account.account_id for account in watched]

    assert is_watched()
    shown = [Position("ABC", Decimal(5), None, Decimal(2), None, None)]
    funds = Balance("USD", Decimal(1), Decimal(1), Decimal(1))
    save_holdings(desk, shown, funds)
    assert not is_watched()


def test_an_order_that_its_ended_intent_has_left_open_is_found_by_reconciliation(desk):
    """Nothing of it changes at the broker: that it is open is what there is to report."""
    order = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    desk.execute("UPDATE intents.intent SET status = 'CANCELED' WHERE account_id = :account_id")

    def reconcile() -> list[BrokerReport]:
        known_orders = known_open_orders(desk)
        found = reconciliation.AccountReconciliation(desk.account_id, Shown(order, []), known_orders).differences()
        recorder.record(desk.deps.connections, found)
        return found

    reconcile()

    [row] = desk.rows("broker_order")
    assert row["unwanted_since"]
    codes = [row["payload"].get("reason_code") for row in desk.rows("account_event")]
    assert codes.count("ORDER_AFTER_END") == 1


def logged_positions(desk: Any) -> list[tuple[str, str]]:
    events = [row for row in desk.rows("account_event") if row["type"] == "BROKER_POSITION"]
    payloads = [row["payload"] for row in sorted(events, key=lambda row: row["sequence"])]
    return [(payload["symbol"], payload["quantity"]) for payload in payloads]


def test_a_position_that_the_stream_did_not_show_is_logged_by_reconciliation_once(desk):
    funds = Balance("USD", Decimal(1), Decimal(1), Decimal(1))

    def reconcile(**held: int) -> int | None:
        shown = [Position(symbol, Decimal(number), None, Decimal(2), None, None) for symbol, number in held.items()]
        return save_holdings(desk, shown, funds)

    order = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    now = datetime.now(UTC)
    seen = replace(order, filled_quantity=Decimal(4), average_price=Decimal(1), updated_at=now)
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, seen, now)])
    assert logged_positions(desk) == [], "the broker has not reported how it stands"

    assert reconcile(ABC=4) is not None and reconcile(ABC=4) is None
    assert logged_positions(desk) == [("ABC", "4")]

    recorder.record(desk.deps.connections, [filled(desk, order, 9, position=9)])
    assert reconcile(ABC=9) is None, "the stream has shown that"
    assert reconcile(XYZ=1) is not None and reconcile(XYZ=1) is None
    assert logged_positions(desk) == [("ABC", "4"), ("ABC", "9"), ("ABC", "0"), ("XYZ", "1")]
    sequences = sorted(row["sequence"] for table in ("action", "account_event") for row in desk.rows(table))
    assert sequences == list(range(1, len(sequences) + 1))


def test_reconciliation_waits_as_long_as_the_broker_wishes(desk, start, scripted):
    scripted.says(429, {"message": "slow down"}, Retry_After="600")
    accept(desk, desk.created(create("SIM.OPEN"))["intent_id"], "b1")
    reconciler = start("reconciler", PAPER_BROKER_URL=scripted.url, RECONCILE_SECONDS="0.1")

    def queries() -> list[Any]:
        return [key_id for key_id in scripted.key_ids if key_id == str(desk.account_id)]

    eventually(queries)
    time.sleep(2)
    reconciler.end()

    assert len(queries()) == 1


def test_a_credential_that_is_refused_by_the_broker_is_reported_to_accounts_once(new_desk, start, scripted):
    scripted.says(401, {"message": "request is not authorized"})
    desk = new_desk(broker="alpaca")
    give_credential(desk, "was-good-yesterday")
    accept(desk, desk.created(create("SIM.OPEN"))["intent_id"], "b2")
    start("reconciler", ALPACA_PAPER_URL=scripted.url, RECONCILE_SECONDS="0.1")

    def events_of_credential() -> list[Any]:
        return [row for row in desk.outbox() if row["event_type"] == "credential.invalid"]

    eventually(events_of_credential)
    tried = len(scripted.requests)
    eventually(lambda: len(scripted.requests) > tried + 3)

    [row] = events_of_credential()
    assert row["payload"]["account_id"] == str(desk.account_id) and row["payload"]["version"] == 1
