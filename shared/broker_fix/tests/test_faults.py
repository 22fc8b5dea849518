"""The line cut, the broker killed and the gateway killed at every message: nothing is lost and nothing done twice.

FIX_FAULTS=all tries every message; `make test` some.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from tip_brokers import (
    Broker,
    Change,
    DuplicateClientOrderId,
    NewOrder,
    NotSent,
    Order,
    OrderStatus,
    OutcomeUnknown,
    Refused,
)
from tip_testing.broker_conformance import limit, order
from tip_testing.broker_conformance.market import new_client_order_id
from tip_testing.fix_acceptor import Acceptor, FixLine, Gateway
from tip_testing.waiting import eventually

from .conftest import broker_at, new_account

T = TypeVar("T")
MESSAGES = 10  # of a story
SOME = (2, 5, 8)
EVERY = tuple(range(1, MESSAGES + 1))
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
PLACES = EVERY if os.environ.get("FIX_FAULTS") == "all" else SOME


@dataclass
class Desk:
    """Trades as the executor does: what is unknown is queried, and sent again only if it is not there."""

    broker: Broker
    made: list[Order] = field(default_factory=list)

    def create(self, wanted: NewOrder) -> Order:
        return self._done(lambda: self.broker.create(wanted), wanted.client_order_id, wanted.symbol)

    def replace(self, old: Order, quantity: str) -> Order:
        change = Change(new_client_order_id(), Decimal(quantity), "GTC", Decimal(2))
        return self._done(lambda: self.broker.replace(old.broker_order_id, change), change.client_order_id, old.symbol)

    def cancel(self, target: Order) -> Order:
        while True:
            with suppress(OutcomeUnknown, NotSent, Refused):
                self.broker.cancel(target.broker_order_id)
            found = self.sure(lambda: self.broker.order(target.broker_order_id))
            if found and found.status not in (OrderStatus.WORKING, OrderStatus.PENDING):
                return found

    def _done(self, send: Callable[[], Order], name: str, symbol: str) -> Order:
        while True:
            with suppress(OutcomeUnknown, NotSent, DuplicateClientOrderId):
                self.made.append(send())
                return self.made[-1]
            if found := self.sure(lambda: self.broker.find(name, symbol)):
                self.made.append(found)
                return found

    def sure(self, read: Callable[[], T]) -> T:
        """What the broker says, once it can be queried."""
        answers: list[T] = []

        def ask() -> bool:
            with suppress(OutcomeUnknown, NotSent):
                answers.append(read())
            return bool(answers)

        eventually(ask)
        return answers[0]

    def trade(self) -> None:
        """A story: one order is filled in parts, another one is replaced and canceled."""
        filled = self.create(order("PARTS"))
        resting = self.create(limit("OPEN"))
        replaced = self.replace(resting, "7")
        assert self.cancel(replaced).status in (OrderStatus.CANCELED, OrderStatus.PENDING_CANCEL)
        eventually(lambda: self.shown(filled).status is OrderStatus.FILLED)
        eventually(lambda: self.shown(replaced).status is OrderStatus.CANCELED)
        assert self.shown(resting).status is OrderStatus.REPLACED

    def shown(self, made: Order) -> Order:
        found = self.sure(lambda: self.broker.order(made.broker_order_id))
        assert found is not None
        return found


@dataclass
class Place:
    acceptor: Acceptor
    line: FixLine
    start: Callable[..., Gateway]
    gateways: list[Gateway] = field(default_factory=list)

    def begin_gateway(self) -> None:
        self.gateways.append(self.start(self.line.port))

    def desk(self) -> Desk:
        return Desk(broker_at(*(gateway.url for gateway in self.gateways), account=new_account()))

    def active(self) -> Gateway:
        return eventually(lambda: next((gateway for gateway in self.gateways if gateway.is_ready()), None))

    def fail_at(self, number: int, fault: Callable[[], None]) -> threading.Event:
        """Counted from now on; the message itself is lost."""
        first, done = self.line.count, threading.Event()

        def at(count: int, _message: bytes) -> bool:
            if count < first + number or done.is_set():
                return False
            done.set()
            fault()
            return True

        self.line.fault = at
        return done

    def check(self, desk: Desk) -> None:
        """The broker's own journal against what the gateway says."""
        received = list(self.acceptor.received())
        for made in desk.made:
            first_sends = [message for message in received if message.get(11) == made.client_order_id
                           and message[35] in "DG" and "Y" not in (message.get(43), message.get(97))]  # fmt: skip
            assert len(first_sends) <= 1, "sent as new more than once"
            chains = [chain for chain in self.acceptor.market().chains if made.client_order_id in chain.names]
            assert len(chains) == 1, "one order at the broker"
        fills = desk.sure(lambda: list(desk.broker.executions(LONG_AGO)))
        assert len({fill.id for fill in fills}) == len(fills)
        assert desk.shown(desk.made[0]).filled_quantity == 10 >= sum(fill.quantity for fill in fills)


@pytest.fixture(scope="module")
def place(acceptor: Acceptor, start_gateway: Callable[..., Gateway]) -> Iterator[Place]:
    made = Place(acceptor, FixLine(acceptor.port), start_gateway)
    made.begin_gateway()
    made.begin_gateway()
    made.active()
    yield made
    made.line.close()


def test_the_line_is_cut_at_every_message(place: Place) -> None:
    for number in EVERY:
        desk, done = place.desk(), place.fail_at(number, lambda: None)

        desk.trade()

        assert done.is_set()
        place.check(desk)


@pytest.mark.parametrize("number", PLACES)
def test_the_broker_is_killed_at_a_message(place: Place, number: int) -> None:
    desk = place.desk()
    place.fail_at(number, place.acceptor.restart)

    desk.trade()

    place.check(desk)


@pytest.mark.parametrize("number", PLACES)
def test_the_gateway_is_killed_at_a_message_and_the_next_one_resumes_the_session(place: Place, number: int) -> None:
    owner = place.active()
    desk = place.desk()
    place.fail_at(number, lambda: killed.append(owner.process.end()))
    killed: list[Any] = []

    desk.trade()

    assert killed and place.active() is not owner
    place.gateways.remove(owner)
    place.check(desk)
    place.begin_gateway()


def test_a_silent_line_is_given_up_and_the_session_goes_on(place: Place) -> None:
    desk = place.desk()
    place.active()
    place.line.is_silent = True
    threading.Timer(3.0, lambda: setattr(place.line, "is_silent", False)).start()

    desk.trade()

    place.check(desk)


def test_a_frozen_gateway_sends_nothing_once_another_owns_the_session(place: Place) -> None:
    owner = place.active()
    owner.process.freeze()
    desk = Desk(broker_at(*(gateway.url for gateway in place.gateways if gateway is not owner), account=new_account()))

    desk.trade()
    owner.process.thaw()

    eventually(lambda: not owner.is_ready())
    place.check(desk)
