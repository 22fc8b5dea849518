"""What is to be written of a locked intent: its status by the table of the life cycle, and the events that show it."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from intents.execution.model.calls import BrokerCall
from intents.execution.model.locked_intent import MISSING, STARTED, BrokerOrder, Command, LockedIntent, Progress
from intents.model import TERMINAL, Intent, Status, reports
from intents.model.groups import EXITS, SIBLINGS
from intents.model.reports import Report
from tip_brokers.protocol import ENDED, Order


@dataclass(frozen=True)
class QueryPolicy:
    """When the broker is queried about an unknown outcome, and polled for one that it has taken in."""

    first_after_seconds: float = 5.0
    every_seconds: float = 2.0
    poll_seconds: float = 0.25


DEFAULT_POLICY = QueryPolicy()


@dataclass(slots=True)
class Settlement:
    """What is to be written of a locked intent: begins as a copy of it, and what differs at the end is written."""

    locked: LockedIntent
    policy: QueryPolicy
    intent: Intent
    orders: dict[str, BrokerOrder]
    command: Command | None
    progress: Progress
    rank: int = 0
    """The place of the input that acts now: events and positions of several intents of one account keep that order."""
    events: list[dict[str, Any]] = field(default_factory=list)
    position_changes: list[dict[str, Any]] = field(default_factory=list)
    calls: list[BrokerCall] = field(default_factory=list)
    unsent_orders: list[str] = field(default_factory=list)
    """Keys of orders that were certainly not sent."""
    legs: tuple[Order, ...] = ()
    """What the broker has shown as legs of an order of the intent: the stop that was sent with it."""

    @classmethod
    def begin(cls, locked: LockedIntent, policy: QueryPolicy = DEFAULT_POLICY) -> "Settlement":
        orders = {key: replace(order, executions=set(order.executions)) for key, order in locked.orders.items()}
        return cls(locked, policy, locked.intent, orders, locked.command, replace(locked.progress))

    @property
    def now(self) -> datetime:
        return self.locked.now

    @property
    def current_order(self) -> BrokerOrder | None:
        wanted = self.intent.broker_order_id
        return next((order for order in self.orders.values() if wanted and order.broker_order_id == wanted), None)

    @property
    def deleted_orders(self) -> list[str]:
        """Keys of orders that were not sent, and that the broker has not shown all the same."""
        known = (self.orders.get(key) for key in self.unsent_orders)
        return [order.key for order in known if order and order.broker_order_id is None]

    @property
    def changed_orders(self) -> list[BrokerOrder]:
        kept = self.orders.keys() - self.deleted_orders
        return [o for key, o in self.orders.items() if key in kept and o != self.locked.orders.get(key)]

    @property
    def is_changed(self) -> bool:
        same_intent = self.intent is self.locked.intent and self.progress == self.locked.progress
        return bool(not same_intent or self.events or self.changed_orders or self.calls)

    @property
    def is_overordered(self) -> bool:
        """Whether the order at the broker can fill more than the intent still asks for; of an order group's exit, also
        less: what its parent has filled late is to be closed, too."""
        order = self.current_order
        if order is None or order.quantity is None or order.status in ENDED or self.intent.status in TERMINAL:
            return False
        if self.intent.spec.notional is not None:  # its quantity is an estimate, the broker's is the order
            return False
        if self.locked.group and self.locked.group.paired and self.intent.group_role in SIBLINGS:
            return False  # the broker itself takes from one exit what the other has filled
        at_broker = order.quantity - order.filled_quantity
        wanted = self.intent.quantity - self.intent.filled_quantity
        return at_broker > wanted or (at_broker < wanted and self.intent.group_role in EXITS)


def apply_report(settlement: Settlement, report: Report) -> bool:
    """Let it act by the table of the life cycle, and append its event; False if it means nothing any more."""
    before = settlement.intent.status
    after = reports.apply(settlement.intent, report)
    if after is None:
        return False
    settlement.intent = after
    append_order_event(settlement, before, report)
    if after.status in TERMINAL:
        settlement.command = None
        settlement.progress.open_actions, settlement.progress.submit_started_at = 0, None
        _give_up_unsettled(settlement)
    return True


def _give_up_unsettled(settlement: Settlement) -> None:
    """What was being sent when the intent ended may still surface at the broker."""
    for order in settlement.orders.values():
        unseen = order.status == STARTED and order.broker_order_id is None
        if unseen and order.key not in settlement.unsent_orders:
            order.status = MISSING


def complete_command(settlement: Settlement) -> None:
    """The command is settled: the next one may start."""
    if settlement.command is None:
        return
    progress = settlement.progress
    progress.done_sequence, progress.open_actions = settlement.command.sequence, progress.open_actions - 1
    progress.submit_started_at, progress.attempts, progress.absences = None, 0, 0
    progress.next_attempt_at, progress.waiting_since = settlement.now, None
    settlement.command = None
    if settlement.intent.outcome:
        settlement.intent = replace(settlement.intent, outcome=None)


def append_order_event(settlement: Settlement, before: Status, report: Report) -> None:
    statuses = {"from_status": before, "to_status": settlement.intent.status}
    payload = reports.broker_order(settlement.intent, report)
    settlement.events.append(event(settlement, "BROKER_ORDER", payload, report.occurred_at) | statuses)


def append_note(settlement: Settlement, report: Report) -> None:
    """An event about the intent that leaves its status as it is, and its reason with it."""
    status = settlement.intent.status
    payload = reports.broker_order(settlement.intent, report) | {
        "reason_code": report.reason_code,
        "broker_order_id": report.broker_order_id or settlement.intent.broker_order_id,
    }
    statuses = {"from_status": status, "to_status": status}
    settlement.events.append(event(settlement, "BROKER_ORDER", payload, report.occurred_at) | statuses)


def event(settlement: Settlement, type_: str, payload: dict[str, Any], moment: datetime) -> dict[str, Any]:
    return {"rank": settlement.rank, "type": type_, "payload": payload, "occurred_at": moment}
