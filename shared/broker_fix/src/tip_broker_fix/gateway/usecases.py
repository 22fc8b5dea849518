"""What callers request, and one step of the session: everything that came in together, in one transaction."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

from psycopg2.extensions import connection as Connection  # noqa: N812

from tip_broker_fix.gateway import order_messages, store, tags
from tip_broker_fix.gateway import orders as rules
from tip_broker_fix.gateway.codec import Message
from tip_broker_fix.gateway.orders import ABSENT, ENDED, REFUSED, SENT, Change, Order
from tip_broker_fix.gateway.session import FRESH_SECONDS, Sent, Session

Until = Callable[[Order], bool]


class Refusal(Exception):
    """A definite no: nothing was sent."""


class NotFound(Refusal):
    """The account has no such order at the broker."""


class DuplicateClientOrderId(Refusal):
    """There is an order with this id, or may be one."""


class Unprocessable(Refusal):
    """The broker would not do it, or has said so."""


class SessionDown(Refusal):
    """There is no session with the broker here: nothing was sent."""


class NoAnswer(Exception):
    """It was sent, and nothing came back in time."""


@dataclass
class Step:
    """One transaction, and what has to be done after its commit."""

    tx: Connection
    name: str
    session: Session
    now: datetime
    known: dict[str, Order | None] = field(default_factory=dict)
    changed: dict[str, Order] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def load(self, names: Iterable[str]) -> None:
        missing = [name for name in names if name not in self.known]
        if missing:
            found = store.orders(self.tx, self.name, missing)
            self.known |= {name: found.get(name) for name in missing}

    def find(self, name: str) -> Order | None:
        self.load([name])
        return self.known[name]

    def of_account(self, account: str, name: str) -> Order:
        order = self.find(name)
        if order is None or order.account != account or order.status in rules.UNSEEN:
            raise NotFound("order not found")
        return order

    def put(self, order: Order) -> None:
        self.known[order.client_order_id] = self.changed[order.client_order_id] = order

    def send(self, kind: str, body: order_messages.Body) -> int:
        if not self.session.is_active:
            raise SessionDown("no session with the broker")
        return self.session.send(kind, body, self.now)

    def receive(self, messages: Iterable[Message]) -> None:
        """What the messages change; after a logon, the broker is queried for what may have been missed."""
        was_active = self.session.is_active
        for message in messages:
            self.session.receive(message, self.now)
        self._take_delivered()
        if self.session.is_active and not was_active:
            self._query_missed()

    def _take_delivered(self) -> None:
        delivered, self.session.delivered = [self._named(message) for message in self.session.delivered], []
        self.load(name for message in delivered for name in rules.concerned(message))
        for message in delivered:
            for change in rules.read(message, self.find, self.now):
                self.put(change.order)
                self.changes.append(change)

    def _named(self, message: Message) -> Message:
        """A rejection names the number of what it rejects: with the order's own name."""
        number = message.get(tags.REF_SEQ_NUM) or ""
        if message.type not in (tags.REJECT, tags.BUSINESS_REJECT) or not re.fullmatch(r"[0-9]{1,18}", number):
            return message
        sent = store.message(self.tx, self.name, int(number))
        commands = sent.body if sent and sent.type in tags.COMMANDS else ()
        names = [value for tag, value in commands if tag == tags.CL_ORD_ID]
        return Message(message.type, {**message.values, tags.CL_ORD_ID: names[0]}) if names else message

    def _query_missed(self) -> None:
        self.send(tags.MASS_STATUS_REQUEST, order_messages.mass_status(uuid4().hex))
        for order in store.unanswered(self.tx, self.name):
            self.send(tags.STATUS_REQUEST, order_messages.status(order))

    def keep(self, owner: UUID, lease_seconds: float) -> None:
        """Everything, before anything is written to the line."""
        new = [out for out in self.session.outgoing if out.original is None and out.type not in tags.ADMIN]
        store.keep_messages(self.tx, self.name, new)
        store.keep_orders(self.tx, self.name, self.changed.values())
        store.keep_executions(self.tx, self.name, self.changes)
        numbers = store.Numbers(self.session.next_out, self.session.next_in)
        store.keep_numbers(self.tx, self.name, owner, lease_seconds, numbers)


def history(tx: Connection, name: str, now: Callable[[], datetime]) -> Callable[[int, int], list[Sent]]:
    """Only what is fresh: nothing else is sent again."""
    return lambda first, last: store.messages(tx, name, first, last, now() - timedelta(seconds=FRESH_SECONDS))


def is_answered(order: Order) -> bool:
    return order.status != SENT


@dataclass(frozen=True)
class Submit:
    order: Order

    @property
    def name(self) -> str:
        return self.order.client_order_id

    @property
    def concerns(self) -> tuple[str, ...]:
        return (self.name,)

    def run(self, step: Step) -> Until:
        status = check_unused(step, self.name)
        number = step.send(tags.NEW_ORDER, order_messages.new_order(replace(self.order, status=status), step.now))
        step.put(replace(self.order, number=number, created_at=step.now, updated_at=step.now))
        return is_answered


def check_unused(step: Step, name: str) -> str:
    """An id is used once; only what the broker has said not to have is sent again."""
    earlier = step.find(name)
    if earlier and earlier.status == REFUSED:
        raise Unprocessable(earlier.reason or "refused")
    if earlier and earlier.status != ABSENT:
        raise DuplicateClientOrderId("client_order_id must be unique")
    return earlier.status if earlier else SENT


@dataclass(frozen=True)
class Amend:
    """A replacement of an order; `quantity` is without what the old one has filled."""

    account: str
    replaces: str
    name: str
    quantity: Decimal
    time_in_force: str
    limit_price: Decimal | None
    stop_price: Decimal | None

    @property
    def concerns(self) -> tuple[str, ...]:
        return self.name, self.replaces

    def run(self, step: Step) -> Until:
        status = check_unused(step, self.name)
        old = step.of_account(self.account, self.replaces)
        if old.status in ENDED:
            raise Unprocessable(f"order is already {old.status}")
        order = self._order(old, step.now)
        body = order_messages.replacement(replace(order, status=status), old, step.now)
        step.put(replace(order, number=step.send(tags.REPLACE, body)))
        return is_answered

    def _order(self, old: Order, now: datetime) -> Order:
        """Where it begins in the chain shows when the broker has replaced the old one."""
        return Order(
            self.name, old.account, old.symbol, old.side, old.kind, self.time_in_force, self.quantity, now, now,
            self.limit_price, self.stop_price, old.destination, order_id=old.order_id, replaces=self.replaces,
        )  # fmt: skip


@dataclass(frozen=True)
class Cancel:
    account: str
    name: str

    @property
    def concerns(self) -> tuple[str, ...]:
        return (self.name,)

    def run(self, step: Step) -> Until:
        order = step.of_account(self.account, self.name)
        if order.status in ENDED:
            raise Unprocessable(f"order is already {order.status}")
        order = replace(order, cancels=order.cancels + 1)
        step.send(tags.CANCEL, order_messages.cancel(order, step.now))
        step.put(order)
        return lambda now: now.status in ENDED or now.status == "pending_cancel" or now.rejected_cancel >= order.cancels


@dataclass(frozen=True)
class Query:
    """What has become of an order: the broker is queried if it has not answered yet."""

    account: str
    name: str

    @property
    def concerns(self) -> tuple[str, ...]:
        return (self.name,)

    def run(self, step: Step) -> Until:
        order = step.find(self.name)
        if order is None or order.account != self.account:
            raise NotFound("order not found")
        if order.status == SENT:
            step.send(tags.STATUS_REQUEST, order_messages.status(order))
        return is_answered


Request = Submit | Amend | Cancel | Query
"""`concerns` names the orders that it reads: those of all requests of a step are read at once."""
