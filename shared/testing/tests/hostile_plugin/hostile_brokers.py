"""A family of brokers at the paper broker, each of which claims something and does not keep it.

It is long because it is a table: one class of a few lines for each lie, and the entry points that list them.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from typing import Any, ClassVar

import requests

from tip_broker_alpaca import PAPER, PAPER_URL
from tip_broker_alpaca.account import Alpaca, Connection
from tip_brokers import (
    BrokerDescription,
    BrokerSettings,
    Capabilities,
    ClientIds,
    Connector,
    DuplicateClientOrderId,
    NewOrder,
    Order,
    OutcomeUnknown,
    Refused,
    Replacement,
    SymbolForm,
)
from tip_brokers.simulator import Simulator
from tip_testing.broker_check.plugin import LONGEST_DETAIL
from tip_testing.broker_simulators import paper

CLAIMED = PAPER.capabilities


class Honest(Alpaca):
    """Keeps everything: what the others are compared with."""

    claims: ClassVar[Capabilities] = CLAIMED
    direct: ClassVar[set[str]] = set()
    """Client order ids of orders that went where the account says."""

    def create(self, order: NewOrder, *check: Any) -> Order:
        if order.route_strategy == "DIRECT":
            self.direct.add(order.client_order_id)
        return super().create(order, *check)


class StreamThatEnds(Honest):
    def listen(self, *_: Any) -> None:
        return None


class StreamThatIsSilent(Honest):
    def listen(self, on_ready: Callable[[], None], _on_update: Any, stop: threading.Event) -> None:
        on_ready()
        stop.wait()


class TakesAnIdTwice(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        try:
            return super().create(order, *check)
        except DuplicateClientOrderId:
            return super().create(replace(order, client_order_id=order.client_order_id + "-2"), *check)


class AnswersAnIdAsAnother(TakesAnIdTwice):
    claims = replace(CLAIMED, client_ids=ClientIds.HEADER)
    client_ids = ClientIds.HEADER


class SaysEchoInTheAdapter(Honest):
    client_ids = ClientIds.ECHO


class FindsNothing(Honest):
    claims = replace(CLAIMED, client_ids=ClientIds.ECHO)
    client_ids = ClientIds.ECHO

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        return None


class SendsStopsAsMarket(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        sent = replace(order, kind="Market", stop_price=None) if order.kind == "Stop" else order
        return super().create(sent, *check)


class DropsLimits(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        sent = replace(order, kind="Market", limit_price=None) if order.kind == "Limit" else order
        return super().create(sent, *check)


class SendsImmediateAsDay(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        is_immediate = order.time_in_force in ("IOC", "FOK")
        return super().create(replace(order, time_in_force="DAY") if is_immediate else order, *check)


class RefusesStopLimits(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        if order.kind == "StopLimit":
            raise Refused("NO", "no such kind here")
        return super().create(order, *check)


class SendsTrailingStopsAsStops(Honest):
    """At the price where the stop of a moment ago was: it never trails."""

    def create(self, order: NewOrder, *check: Any) -> Order:
        if order.kind != "TrailingStop":
            return super().create(order, *check)
        away = Decimal(87) if order.order_side == "SELL" else Decimal(1000)
        sent = replace(order, kind="Stop", stop_price=away, trail_amount=None, trail_percent=None)
        return replace(super().create(sent, *check), kind="TrailingStop")

    def order(self, broker_order_id: str) -> Order | None:
        found = super().order(broker_order_id)
        return replace(found, kind="TrailingStop") if found and found.kind == "Stop" else found


class TakesTheNotionalForAQuantity(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        sent = replace(order, quantity=order.notional, notional=None) if order.notional else order
        return super().create(sent, *check)


class ForgetsExtendedHours(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        return super().create(replace(order, extended_hours=False), *check)


class ClaimsAnUnknownKind(Honest):
    claims = replace(CLAIMED, kinds={**CLAIMED.kinds, "Iceberg": ("DAY",)})


class RefusesReplacements(Honest):
    def replace(self, *_: Any) -> Order:
        raise Refused("NO", "nothing is replaced here")


class ReplacesNothing(Honest):
    def replace(self, broker_order_id: str, *_: Any) -> Order:
        found = self.order(broker_order_id)
        assert found
        return found


class HasNoPrices(Honest):
    def quotes(self, *_: Any) -> list[Any]:
        return []


class PricesWithoutAge(Honest):
    def quotes(self, symbols: Any) -> list[Any]:
        return [quote._replace(quoted_at=None, traded_at=None) for quote in super().quotes(symbols)]


class ListsNoFills(Honest):
    def executions(self, *_: Any) -> Iterator[Any]:
        return iter(())


class RenamesFills(Honest):
    def executions(self, *given: Any) -> Iterator[Any]:
        return (replace(fill, id=f"other-{fill.id}") for fill in super().executions(*given))


class CutsFractions(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        whole = order.quantity.quantize(Decimal(1), ROUND_DOWN)
        return super().create(replace(order, quantity=whole), *check)


class RefusesDirect(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        if order.route_strategy == "DIRECT":
            raise Refused("NO", "only AUTO")
        return super().create(order, *check)


class ReservesPositions(Honest):
    """As the paper broker does, which does not claim otherwise."""

    claims = replace(CLAIMED, shared_exits=True)


class SendsExitsAlone(Honest):
    """The stop is left out: a position is without it."""

    def create(self, order: NewOrder, *check: Any) -> Order:
        return super().create(replace(order, stop_exit=None), *check)


class HidesLegs(Honest):
    def find(self, client_order_id: str, symbol: str) -> Order | None:
        found = super().find(client_order_id, symbol)
        return found and replace(found, legs=() if found.legs else None)


class IgnoresDirect(Honest):
    def create(self, order: NewOrder, *check: Any) -> Order:
        return super().create(replace(order, route_strategy="AUTO"), *check)


class OtherSymbols(Honest):
    claims = replace(CLAIMED, symbols=SymbolForm(r"[a-z]+", "aapl"))


class CancelsNothing(Honest):
    def cancel(self, *_: Any) -> None:
        return None


class SendsWithoutCheck(Honest):
    def create(self, order: NewOrder, *_check: Any) -> Order:
        return super().create(order)


class TakesBrokenForAbsent(Honest):
    def find(self, client_order_id: str, symbol: str) -> Order | None:
        try:
            return super().find(client_order_id, symbol)
        except OutcomeUnknown:
            return None


class Leaky(Honest):
    """Says its credential in a refusal and in an error of its own."""

    def create(self, order: NewOrder, *check: Any) -> Order:
        raise Refused("NO", f"refused with {self._headers}")

    def positions(self) -> list[Any]:
        raise KeyError(*self._headers.values())


class LeakyAtLogin(Honest):
    """Says its credential before a fact is run."""

    def account_id(self) -> str:
        raise OutcomeUnknown(f"no account for {self._headers}")


class LeakyAtLength(Honest):
    """What it says ends, where a report cuts it, in the middle of its credential."""

    def positions(self) -> list[Any]:
        secret = self._headers["APCA-API-SECRET-KEY"]
        raise KeyError("x" * (LONGEST_DETAIL - len("KeyError: '") - len(secret) // 2) + secret)


class TakesItsTime(Honest):
    """A cancel takes longer than a process that was interrupted is given by its parent."""

    def cancel(self, *given: Any) -> None:
        time.sleep(1.5)
        super().cancel(*given)


class FailsAtTheEnd(Honest):
    """Its listing of open orders fails by an error of its own."""

    def open_orders(self) -> Iterator[Order]:
        raise KeyError("orders")


class TakesFractionsForTheDay(Honest):
    """As Alpaca does."""

    def create(self, order: NewOrder, *check: Any) -> Order:
        if order.quantity % 1 and order.time_in_force != "DAY":
            raise Refused("NO", "fractional orders must be DAY orders")
        return super().create(order, *check)


class ShowsPositionsLate(Honest):
    """A position follows its fill only when it is read once more."""

    late: ClassVar[list[Any]] = []

    def positions(self) -> list[Any]:
        now = super().positions()
        before = self.late[:] or now
        self.late[:] = now
        return before


class ReplacesAndFindsNothing(Honest):
    """Claims neither replacements nor client ids, nor a stream."""

    claims = replace(CLAIMED, client_ids=ClientIds.NONE, replacement=Replacement.NONE, streams=False)
    client_ids = ClientIds.NONE

    def replace(self, *_: Any) -> Order:
        raise NotImplementedError

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        return None


class OnlyMarketOrders(Honest):
    claims = replace(CLAIMED, kinds={"Market": ("DAY",)})


class WithoutPrices(Honest):
    """Claims none, so that nobody knows what is far above the market."""

    claims = replace(CLAIMED, quotes=False)


class Interrupts(Honest):
    """Ends the check before its facts are run."""

    def create(self, order: NewOrder, *check: Any) -> Order:
        raise KeyboardInterrupt


class Stray(Honest):
    """Connects to somewhere else than it was given."""

    def positions(self) -> list[Any]:
        requests.get("http://192.0.2.1/positions", timeout=60)
        return super().positions()


FAMILY: dict[str, type[Honest]] = {
    cls.__name__.lower(): cls
    for cls in (
        Honest, StreamThatEnds, StreamThatIsSilent, TakesAnIdTwice, AnswersAnIdAsAnother, SaysEchoInTheAdapter,
        FindsNothing, SendsStopsAsMarket, DropsLimits, SendsImmediateAsDay, RefusesStopLimits, ClaimsAnUnknownKind,
        SendsTrailingStopsAsStops, TakesTheNotionalForAQuantity, ForgetsExtendedHours, ReservesPositions,
        SendsExitsAlone, HidesLegs,
        RefusesReplacements, ReplacesNothing, HasNoPrices, PricesWithoutAge, ListsNoFills, RenamesFills, CutsFractions,
        RefusesDirect, IgnoresDirect, OtherSymbols, CancelsNothing, SendsWithoutCheck, TakesBrokenForAbsent, Leaky,
        LeakyAtLogin, LeakyAtLength, TakesItsTime, FailsAtTheEnd, TakesFractionsForTheDay, ShowsPositionsLate,
        ReplacesAndFindsNothing, OnlyMarketOrders, WithoutPrices, Interrupts, Stray,
    )
}  # fmt: skip


class HostileConnection(Connection):
    adapter: type[Honest]

    def account(self, secret: Mapping[str, str]) -> Alpaca:
        return self.adapter(self, secret["key_id"], secret["secret_key"])


def brokers() -> Iterator[BrokerDescription]:
    for name, adapter in FAMILY.items():
        yield replace(PAPER, name=f"hostile:{name}", capabilities=adapter.claims, connect=_connect_with(adapter))


def _connect_with(adapter: type[Honest]) -> Callable[[str, BrokerSettings], Connector]:
    def connect(_environment: str, settings: BrokerSettings) -> Connector:
        seconds = {"connect_seconds": settings.connect_seconds, "read_seconds": settings.read_seconds}
        made = HostileConnection(settings.of(PAPER_URL), **seconds)
        made.adapter = adapter
        return made

    return connect


@contextmanager
def simulator(broker: BrokerDescription) -> Iterator[Simulator]:
    with paper.simulator(broker) as started:
        yield replace(started, went_direct=Honest.direct.__contains__)
