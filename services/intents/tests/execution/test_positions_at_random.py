"""A fill counts once in a position, in whatever order it happens, is read with the position, and is recorded.

Order number k is filled by lots of 100 ** k, other trades of the account by ones: so a position shows how much of each
it contains. Forty stories by default at each kind of broker; `POSITION_STORIES=10000 pytest …` runs that many.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intents.execution import recorder, store
from intents.execution.account_reading import read_account
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.verdicts import OrderFound
from intents.execution.reconciliation import AccountReconciliation
from tip_brokers import ENDED, Balance, ClientIds, Execution, Order, OrderStatus, Position
from tip_testing.commands import create

from ..broker_side import LEASE_SECONDS

STORIES = int(os.environ.get("POSITION_STORIES", "40"))
ORDERS, LOTS, BASE = 3, 6, 100
SYMBOL = "ABC"


@dataclass
class Market:
    """The account at its broker. Whatever may happen meanwhile happens `before_answer`.

    One that cannot be queried by our ids does not show them either, and sometimes `loses` an order for a moment.
    """

    client_ids: ClientIds = ClientIds.UNIQUE
    orders: dict[str, Order] = field(default_factory=dict)
    traded_by_others: int = 0
    before_answer: Any = None
    loses: Any = None

    @property
    def held(self) -> Decimal:
        signed = (o.filled_quantity * (1 if o.order_side == "BUY" else -1) for o in self.orders.values())
        return sum(signed, Decimal(self.traded_by_others))

    def fill(self, name: str, lots: int) -> Execution | None:
        order = self.orders[name]
        assert order.quantity
        lot = order.quantity / LOTS
        quantity = min(lot * lots, order.quantity - order.filled_quantity)
        if quantity <= 0 or order.status in ENDED:
            return None
        filled = order.filled_quantity + quantity
        status = OrderStatus.FILLED if filled == order.quantity else OrderStatus.WORKING
        now = datetime.now(UTC)
        self.orders[name] = replace(
            order, status=status, filled_quantity=filled, average_price=Decimal(1), updated_at=now
        )
        return Execution(f"{name}-{filled}", order.broker_order_id, quantity, Decimal(1), now, self.held)

    def end(self, name: str) -> None:
        if self.orders[name].status not in ENDED:
            self.orders[name] = replace(self.orders[name], status=OrderStatus.CANCELED)

    def positions(self) -> list[Position]:
        self.before_answer()
        return [Position(SYMBOL, self.held, None, Decimal(1), None, None)] if self.held else []

    def balance(self) -> Balance:
        return Balance("USD", Decimal(1), Decimal(1), Decimal(1))

    def open_orders(self) -> list[Order]:
        self.before_answer()
        shown = [order for order in self.orders.values() if order.status not in ENDED]
        if self.client_ids is not ClientIds.NONE:
            return shown
        return [replace(order, client_order_id=order.broker_order_id, is_nameless=True) for order in shown]

    def order(self, broker_order_id: str) -> Order | None:
        self.before_answer()
        if self.client_ids is ClientIds.NONE and self.loses():
            return None
        return next((o for o in self.orders.values() if o.broker_order_id == broker_order_id), None)

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        assert self.client_ids is not ClientIds.NONE
        self.before_answer()
        return self.orders.get(client_order_id)

    def executions(self, _after: datetime) -> list[Execution]:
        return []


@dataclass
class Story:
    """What happens to one account, as the choices have it."""

    desk: Any
    choices: Iterator[int]
    market: Market = field(default_factory=Market)
    sent: dict[str, LeasedCommand] = field(default_factory=dict)
    recorded: dict[str, Decimal] = field(default_factory=dict)
    updates: list[BrokerReport] = field(default_factory=list)
    readings: int = 0

    def __post_init__(self) -> None:
        self.market.before_answer = self.meanwhile
        self.market.loses = lambda: next(self.choices, 0) % 4 == 3

    def run(self) -> None:
        while (choice := next(self.choices, None)) is not None:
            self.act(choice)
        self.market.before_answer = lambda: None
        self.settle()
        self.read()
        self.read()
        assert self.shown() == self.market.held
        assert [row for row in self.desk.rows("broker_order") if row["intent_id"] is None] == []

    def meanwhile(self) -> None:
        choice = next(self.choices, 1)
        if choice % 3 == 0:
            self.act(choice // 3)

    def act(self, choice: int) -> None:
        which, amount = choice // 8, choice // 40 % 3 + 1
        names = sorted(self.market.orders)
        name = names[which % len(names)] if names else None
        match choice % 8:
            case 0 | 1 if len(self.sent) < ORDERS:
                self.send(is_buy=which % 2 == 0, arrives=choice % 8 == 0)
            case 2 | 3 if name:
                self.fill(name, amount)
            case 4 if name:
                self.answer(name)
            case 5 if self.updates:
                self.record(self.updates.pop(which % min(2, len(self.updates))))
            case 6 if self.readings < 2:
                self.read()
            case 7:
                self.happen_elsewhere(name, which)
        self.check()

    def happen_elsewhere(self, name: str | None, which: int) -> None:
        """A request that arrives late, a trade past the platform, a canceled order."""
        late = [key for key in self.sent if key not in self.market.orders]
        if which % 3 == 0 and late:
            self.arrive(late[0])
        elif which % 3 == 1:
            self.market.traded_by_others = min(9, self.market.traded_by_others + 1)
        elif name:
            self.market.end(name)

    def send(self, *, is_buy: bool, arrives: bool) -> None:
        quantity = str(LOTS * BASE ** (len(self.sent) + 1))
        intent_id = self.desk.created(create(SYMBOL, quantity, "BUY" if is_buy else "SELL"))["intent_id"]
        taken = store.claim(self.desk.deps.connections.autocommit(), 1000, LEASE_SECONDS)
        command = next(command for command in taken if str(command.intent_id) == intent_id)
        self.sent[command.client_order_id] = command
        self.recorded[command.client_order_id] = Decimal(0)
        if arrives:
            self.arrive(command.client_order_id)

    def arrive(self, name: str) -> None:
        command, now = self.sent[name], datetime.now(UTC)
        self.market.orders[name] = Order(
            name, f"b-{name}", OrderStatus.WORKING, SYMBOL, command.order_side, "Market", command.quantity, Decimal(0),
            None, now, now,
        )  # fmt: skip

    def fill(self, name: str, lots: int) -> None:
        execution = self.market.fill(name, lots)
        if execution:
            now = datetime.now(UTC)
            self.updates.append(BrokerReport(self.desk.account_id, self.market.orders[name], now, execution))

    def answer(self, name: str) -> None:
        """The executor learns how the order stands: by its answer, or later because that was lost."""
        self.write(DispatchResult(self.sent[name], OrderFound(self.market.orders[name])), self.market.orders[name])

    def record(self, update: BrokerReport) -> None:
        self.write(update, update.order)

    def write(self, given: Any, order: Order) -> None:
        recorder.record(self.desk.deps.connections, [given])
        name = order.client_order_id
        if not order.is_nameless:
            self.recorded[name] = max(self.recorded[name], order.filled_quantity)

    def read(self) -> None:
        self.readings += 1
        with self.desk.deps.engine.connect() as tx:
            start = store.begin_reading(tx, self.desk.account_id)
        account = AccountReconciliation(self.desk.account_id, self.market, start.orders)  # type: ignore[arg-type]
        differences, holdings = read_account(account, start)
        self.meanwhile()
        with self.desk.deps.engine.begin() as tx:
            store.save_holdings(tx, self.desk.account_id, holdings)
        self.check()
        for report in differences:
            self.meanwhile()
            self.record(report)
        self.readings -= 1

    def settle(self) -> None:
        """Everything is recorded in the end."""
        for name in self.sent:
            if name not in self.market.orders:
                self.arrive(name)
            self.market.end(name)
            self.record(BrokerReport(self.desk.account_id, self.market.orders[name], datetime.now(UTC)))
        self.check()

    def shown(self) -> Decimal:
        rows = {row["symbol"]: row["quantity"] for row in self.desk.rows("position")}
        return rows.get(SYMBOL, Decimal(0))

    def check(self) -> None:
        """Of every order the position contains all that is recorded, and no more than has happened."""
        others, *contained = digits(self.shown(), ORDERS + 1)
        assert 0 <= others <= self.market.traded_by_others
        for (name, command), lots in zip(self.sent.items(), contained, strict=False):
            sign = 1 if command.order_side == "BUY" else -1
            lot = command.quantity / LOTS
            order = self.market.orders.get(name)
            happened = order.filled_quantity / lot if order else 0
            assert self.recorded[name] / lot <= sign * lots <= happened, (self.shown(), name, self.recorded)


def digits(number: Decimal, many: int) -> list[int]:
    """By place, to the base of a hundred; each between -50 and 49."""
    found, rest = [], int(number)
    for _ in range(many):
        digit = (rest + BASE // 2) % BASE - BASE // 2
        found.append(digit)
        rest = (rest - digit) // BASE
    return found


@pytest.mark.parametrize("client_ids", [ClientIds.UNIQUE, ClientIds.NONE])
@given(choices=st.lists(st.integers(0, 479), min_size=8, max_size=60))
@settings(
    max_examples=STORIES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_fill_counts_once_in_whatever_order_it_is_read_and_recorded(new_desk, organization, client_ids, choices):
    Story(new_desk(organization=organization), iter(choices), Market(client_ids)).run()
