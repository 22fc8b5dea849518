"""Orders that belong together: the platform sends, reduces and cancels the one by what becomes of the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tip_client.errors import ConfigurationError
from tip_client.orders import NewOrder, Number, OrderSpec, decimal_of
from tip_client.words import OrderKind, Side, TimeInForce


@dataclass(frozen=True)
class OrderGroup(NewOrder):
    """Several orders, submitted all or none. `spec` is that of the first, whose intent the submit returns.

    Make one of a kind: `Bracket`, `OneCancelsOther` or `OneTriggersOther`. `client.orders(group_id=…)` lists the legs.
    """

    kind: str = ""
    legs: Mapping[str, OrderSpec] | None = None

    def to_json(self) -> dict[str, Any]:
        """The payload of a CREATE."""
        legs = {role: spec.to_json() for role, spec in (self.legs or {}).items()}
        return {**super().to_json(), "spec": {self.kind: legs}}


def _fill(group: OrderGroup, kind: str, first: NewOrder, legs: Mapping[str, OrderSpec]) -> None:
    about = (first.client_id, first.tags, first.route_strategy)
    OrderGroup.__init__(group, first.symbol, first.order_side, first.spec, *about, kind=kind, legs=legs)


class Bracket(OrderGroup):
    """An entry with two exits: as soon as it is filled both are sent, and what the one fills is no longer the other's.

    With `stop_limit` the stop loss is a limit order once its price is reached. The exits stand until they are filled or
    canceled, unless `time_in_force` says otherwise.
    """

    def __init__(
        self,
        entry: NewOrder,
        *,
        take_profit: Number,
        stop_loss: Number,
        stop_limit: Number | None = None,
        time_in_force: TimeInForce | str = TimeInForce.GTC,
    ) -> None:
        profit = _exit(entry, time_in_force, limit=take_profit)
        loss = _exit(entry, time_in_force, stop=stop_loss, limit=stop_limit)
        _fill(self, "Bracket", entry, {"entry": entry.spec, "take_profit": profit, "stop_loss": loss})


class OneCancelsOther(OrderGroup):
    """Two orders of one symbol and side: what the one fills is no longer the other's."""

    def __init__(self, one: NewOrder, other: NewOrder) -> None:
        if (one.symbol, one.order_side) != (other.symbol, other.order_side):
            raise ConfigurationError("Orders that cancel each other have one symbol and side.")
        _fill(self, "OneCancelsOther", one, {"one": one.spec, "other": other.spec})


class OneTriggersOther(OrderGroup):
    """An order, and one of the other side that is sent as soon as it is filled."""

    def __init__(self, parent: NewOrder, child: NewOrder) -> None:
        if parent.symbol != child.symbol or parent.order_side == child.order_side:
            raise ConfigurationError("The order that is triggered has the same symbol and the other side.")
        _fill(self, "OneTriggersOther", parent, {"parent": parent.spec, "child": child.spec})


def _exit(
    entry: NewOrder, time_in_force: TimeInForce | str, *, limit: Number | None = None, stop: Number | None = None
) -> OrderSpec:
    """What closes the entry at these prices."""
    kinds = {(True, False): OrderKind.LIMIT, (False, True): OrderKind.STOP, (True, True): OrderKind.STOP_LIMIT}
    kind = kinds[limit is not None, stop is not None]
    return OrderSpec(kind, entry.spec.quantity, _price(limit), _price(stop), TimeInForce(time_in_force))


def _price(value: Number | None) -> Decimal | None:
    return None if value is None else decimal_of(value)


def with_exits(entry: NewOrder, *, take_profit: Number | None = None, stop_loss: Number | None = None) -> NewOrder:
    """The entry with the exits that are given: a bracket, an order that triggers another, or the entry itself."""
    if take_profit is not None and stop_loss is not None:
        return Bracket(entry, take_profit=take_profit, stop_loss=stop_loss)
    if take_profit is None and stop_loss is None:
        return entry
    side = Side.SELL if entry.order_side is Side.BUY else Side.BUY
    closing = NewOrder(entry.symbol, side, _exit(entry, TimeInForce.GTC, limit=take_profit, stop=stop_loss))
    return OneTriggersOther(entry, closing)
