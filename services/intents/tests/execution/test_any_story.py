"""Commands, fills, halts and faults by chance: in the end the intent is what the broker has, and nothing is left open.

What sends, settles and reconciles is the real code; database and broker are in memory. A failing story is printed.
"""

import random
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from intents.execution.client_order_id import DUPLICATE, client_order_id
from intents.execution.clock import elapsed
from intents.execution.dispatch import Dispatch
from intents.execution.model.commands import ClaimSnapshot, KnownOrder, LeasedCommand
from intents.execution.model.inputs import BrokerReport, DispatchResult, Resolution
from intents.execution.model.known_orders import KnownOpenOrder
from intents.execution.model.local_decisions import decide_locally
from intents.execution.model.locked_intent import MISSING, BrokerOrder, Command, LockedIntent, Progress
from intents.execution.model.settlement import Settlement
from intents.execution.model.settling import settle
from intents.execution.model.verdicts import RetryLater, Unknown, Verdict
from intents.execution.order_queries import OrderQueries
from intents.execution.reconciliation import AccountReconciliation
from intents.model import TERMINAL, Intent, Spec, Status, SubmitFacts, Update, follow
from tip_brokers import ENDED, OPEN, NotSent, Order, OrderStatus, OutcomeUnknown
from tip_brokers.protocol import BrokerError

from .sending import HALTED, sending_facts
from .simulated import START, Simulated, is_ours

STORIES = 150
NONE = Decimal(0)


class AlwaysDue(OrderQueries):
    def is_due(self, _known: KnownOpenOrder) -> bool:
        return True


def limit(quantity: int, price: int) -> Spec:
    return Spec("Limit", {"quantity": str(quantity), "limit_price": str(price), "time_in_force": "DAY"})


class Story:
    def __init__(self, seed: int, **broker: Any) -> None:
        self.dice, self.story = random.Random(seed), list[str]()
        self.broker = Simulated(self.dice, self.story.append, **broker)
        self.account_id, self.prices, self.halted = uuid4(), 1, False
        self.left_behind: list[DispatchResult] = []
        spec = limit(self.dice.randint(5, 30), 1)
        intent = Intent(
            id=uuid4(), symbol="ABC", order_side="BUY", route_strategy="AUTO", spec=spec, quantity=spec.quantity,
            status=Status.PENDING, filled_quantity=NONE, average_fill_price=None, broker_order_id=None,
            reason_code=None, outcome=None, version=1, created_at=START, updated_at=START,
        )  # fmt: skip
        progress = Progress(None, START, None, None, attempts=0, open_actions=1, done_sequence=0)
        self.locked = LockedIntent(self.account_id, intent, {}, None, progress, START)
        self.orders: dict[str, BrokerOrder] = {}
        self.events: list[dict[str, Any]] = []
        self.commands = [self._command(1, "CREATE", spec)]

    def _command(self, sequence: int, type_: str, spec: Spec | None) -> Command:
        return Command(UUID(int=self.dice.getrandbits(128), version=4), sequence, type_, spec)

    # ---- the platform

    @property
    def intent(self) -> Intent:
        return self.locked.intent

    @property
    def progress(self) -> Progress:
        return self.locked.progress

    @property
    def unsettled(self) -> Command | None:
        left = (command for command in self.commands if command.sequence > self.progress.done_sequence)
        return next(left, None) if self.progress.open_actions else None

    def submit(self, type_: str, spec: Spec | None = None) -> None:
        after = follow(self.intent.status, Update(type_))
        if after is None:
            return
        self.story.append(f"{type_} {spec.terms if spec else ''}")
        self.commands.append(self._command(len(self.commands) + 1, type_, spec))
        self.progress.open_actions += 1
        self.locked = replace(self.locked, intent=replace(self.intent, status=after))
        if self.progress.open_actions == 1:
            self.progress.next_attempt_at = self.broker.now

    def submit_replace(self) -> None:
        self.prices += 1
        self.submit("REPLACE", limit(max(1, int(self.intent.quantity) + self.dice.randint(-5, 5)), self.prices))

    def settle(self, given: DispatchResult | BrokerReport | Resolution) -> None:
        """As the recorder does: lock, settle, write what has changed."""
        self.locked = replace(self.locked, orders=self.orders, now=self.broker.now, command=self.unsettled)
        settlement = settle(self.locked, [(0, given)])
        self.write(settlement)
        rows = {
            key[-4:]: (order.broker_order_id, str(order.status), order.unwanted) for key, order in self.orders.items()
        }
        self.story.append(f"   {type(given).__name__}: {self.intent.status} {self.intent.filled_quantity}, {rows}")

    def write(self, settlement: Settlement) -> None:
        if not settlement.is_changed:
            return
        self.orders |= {order.key: order for order in settlement.changed_orders}
        for key in settlement.deleted_orders:
            del self.orders[key]
        self.events += settlement.events
        self.locked = replace(self.locked, intent=settlement.intent, progress=settlement.progress)

    def execute(self) -> None:
        """One run of an executor. Sometimes it loses its lease, and what it has to say comes later or never."""
        command = self.unsettled
        if command is None or self.progress.next_attempt_at > self.broker.now:
            return
        leased = self._claimed(command)
        answer = DispatchResult(leased, decide_locally(leased) or self._dispatched(leased))
        if not self.broker.calm and self.dice.random() < 0.3:
            self.broker.live()
            self.receive_updates()
        if not self.broker.calm and self.dice.random() < 0.1:
            self.story.append("lost its lease")
            self.progress.lease_token, self.progress.absences = None, 0
            self.progress.next_attempt_at = self.broker.now + timedelta(seconds=15)
            self.left_behind.append(answer)
            return
        self.settle(answer)

    def _claimed(self, command: Command) -> LeasedCommand:
        progress, now, name = self.progress, self.broker.now, client_order_id(command.id)
        started, progress.submit_started_at, progress.lease_token = progress.submit_started_at, now, uuid4()
        self.story.append(
            f"run of {command.type} {name[-4:]}, sent before: {started is not None}, halted: {self.halted}"
        )
        if command.type != "CANCEL":
            self.orders.setdefault(name, BrokerOrder(name, command.sequence, None, "STARTED", set(), NONE, NONE, NONE))
        known = (
            KnownOrder(order.key, order.broker_order_id, order.status in ENDED, order.filled_quantity)
            for order in self.orders.values()
        )
        return LeasedCommand(
            account_id=self.account_id, organization_id=self.account_id, intent_id=self.intent.id,
            lease_token=progress.lease_token, lease_ends=elapsed() + 60, now=now, action_id=command.id,
            type=command.type, created_at=START,
            symbol="ABC", order_side="BUY", spec=command.spec or self.intent.spec, quantity=self.intent.quantity,
            filled_quantity=self.intent.filled_quantity, status=self.intent.status,
            broker_order_id=self.intent.broker_order_id, orders=tuple(known), started_before=started,
            attempts=progress.attempts, absences=progress.absences, broker="paper", environment="paper",
            lane="paper paper", submitted_at=START, is_own=False, facts=self._facts(), entitlements=frozenset(),
            credential=None, bound_credential=None, opened_account=None,
            snapshot=ClaimSnapshot(elapsed(), command.sequence, "AUTO", None, 1, START, 1, 0, None),
        )  # fmt: skip

    def _facts(self) -> SubmitFacts:
        return sending_facts(self.account_id, intent=self.intent, account_switch=HALTED if self.halted else None)

    def _dispatched(self, leased: LeasedCommand) -> Verdict:
        try:
            return Dispatch(self.broker, leased, lambda same: same).run()  # type: ignore[arg-type]
        except OutcomeUnknown as error:
            return Unknown(error.reason)
        except NotSent as error:
            return RetryLater(1.0, error.reason)

    def receive_updates(self) -> None:
        while self.broker.updates and self.dice.random() < 0.6:
            update = self.broker.next_update()
            if update and update.order.client_order_id in self.orders:
                self.settle(
                    BrokerReport(self.account_id, update.order, self.broker.now, update.execution, update.rejection)
                )

    def reconcile(self) -> None:
        known_orders = [
            KnownOpenOrder(
                order.key.partition(DUPLICATE)[0],
                order.broker_order_id,
                str(order.status),
                order.filled_quantity,
                START,
                unwanted=order.unwanted,
                of_ended=self.intent.status in TERMINAL,
            )
            for order in self.orders.values()
            if order.status not in ENDED and (order.broker_order_id or order.status == MISSING)
        ]
        try:
            found = AccountReconciliation(self.account_id, self.broker, known_orders, AlwaysDue()).differences()  # type: ignore[arg-type]
        except BrokerError:
            return
        for report in found:
            if report.order.client_order_id in self.orders:
                self.settle(report)

    def guard(self) -> None:
        """As `overfill` does."""
        intent = self.intent
        is_overordered = Settlement.begin(replace(self.locked, orders=self.orders)).is_overordered
        if is_overordered and intent.status in (Status.ACCEPTED, Status.PARTIALLY_FILLED):
            nothing_left = self.halted or intent.quantity <= intent.filled_quantity
            self.submit("CANCEL") if nothing_left else self.submit("REPLACE", intent.spec)

    def operator(self) -> None:
        """Says that it never arrived, which may be wrong."""
        command = self.unsettled
        if command and self.intent.outcome == "unknown":
            self.settle(Resolution(self.account_id, self.intent.id, client_order_id(command.id), "not there"))

    def toggle_halt(self) -> None:
        self.halted = not self.halted

    def receive_lost_result(self) -> None:
        if self.left_behind:
            self.settle(self.left_behind.pop(0))

    # ---- the whole

    def play(self) -> None:
        happens = {
            self.execute: 35, self.submit_replace: 18, self.broker.live: 10, self.receive_updates: 10,
            self.reconcile: 6, self.toggle_halt: 8, self.broker.deliver_late: 10, self.receive_lost_result: 3,
            self.operator: 1, self.broker.somebody_acts: 1, lambda: self.submit("CANCEL"): 1,
        }  # fmt: skip
        self.broker.calm = self.dice.random() < 0.8  # most begin with an order that is accepted
        self.execute()
        self.broker.calm = False
        for step in self.dice.choices(list(happens), list(happens.values()), k=self.dice.randint(20, 100)):
            self.broker.now += timedelta(seconds=self.dice.choice([0.1, 1, 6, 12]))
            step()
            self.guard()
        self.come_to_rest()

    def come_to_rest(self) -> None:
        self.story.append("---- nothing goes wrong any more")
        self.broker.calm = True
        while self.broker.on_their_way or self.left_behind:
            self.broker.deliver_late()
            self.receive_lost_result()
            if self.dice.random() < 0.5:
                self._turn()
        for _ in range(40):
            self._turn()

    def _turn(self) -> None:
        self.broker.now += timedelta(seconds=6)
        self.broker.live()
        self.execute()
        while self.broker.updates:
            self.receive_updates()
        self.reconcile()
        self.guard()

    def judge(self) -> None:
        intent = self.intent
        orders = [order for order in self.broker.orders_by_id.values() if is_ours(order)]
        trades = [event["payload"] for event in self.events if event["type"] == "BROKER_TRADE"]
        assert intent.filled_quantity == sum((order.filled_quantity for order in orders), NONE), "fills"
        assert intent.filled_quantity == sum((Decimal(trade["quantity"]) for trade in trades), NONE), "trades"
        assert self.progress.open_actions == 0, "a command is unsettled"
        self._judge_open([order for order in orders if order.status in OPEN])

    def _judge_open(self, there: list[Order]) -> None:
        intent = self.intent
        here = [order for order in self.orders.values() if order.broker_order_id and order.status not in ENDED]
        assert [order.broker_order_id for order in here] == [order.broker_order_id for order in there], "open orders"
        if intent.status in TERMINAL:
            assert there == [], "open after the end"
            return
        [order] = there
        assert order.broker_order_id == intent.broker_order_id
        assert (order.quantity or NONE) - order.filled_quantity == intent.quantity - intent.filled_quantity, "the total"
        assert self.broker.limits[order.broker_order_id] == intent.spec.price("limit_price"), (
            "another order than wanted"
        )
        assert order.status is OrderStatus.WORKING


@pytest.mark.parametrize(
    "broker",
    [{}, {"lags": True}, {"takes_duplicates": True}, {"lags": True, "takes_duplicates": True}],
    ids=["plain", "lags", "takes duplicates", "both"],
)
def test_whatever_happens_on_the_way_the_intent_is_in_the_end_what_the_broker_has(broker):
    for seed in range(STORIES):
        story = Story(seed, **broker)
        try:
            story.play()
            story.judge()
        except Exception as error:
            raise AssertionError("\n".join([f"seed {seed}: {error!r}", *story.story])) from error
