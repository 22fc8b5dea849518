"""Orders to submit: one class for each kind, with exactly the prices that it has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from tip_client.errors import ConfigurationError
from tip_client.request import given
from tip_client.words import OrderKind, RouteStrategy, Side, TimeInForce

Number = Decimal | int | str
"""A quantity or price. No float: 0.1 is none that a computer can hold."""


def decimal_of(value: Number) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise TypeError("A quantity or price is a Decimal, an int or a str; a float is not exact.")
    try:
        return Decimal(value)
    except InvalidOperation:
        raise ConfigurationError("A quantity or price is not a number.") from None


def _price(value: Number | None) -> Decimal | None:
    return None if value is None else decimal_of(value)


@dataclass(frozen=True)
class OrderSpec:
    """What is ordered, apart from symbol and side: kind, quantity, prices, time in force."""

    kind: OrderKind
    quantity: Decimal
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    time_in_force: TimeInForce | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "OrderSpec":
        """REST names the kind by a key, events by a field."""
        kind, terms = (data["order_kind"], data) if "order_kind" in data else next(iter(data.items()))
        held = terms.get("time_in_force")
        limit, stop = _price(terms.get("limit_price")), _price(terms.get("stop_price"))
        return cls(OrderKind(kind), Decimal(terms["quantity"]), limit, stop, TimeInForce(held) if held else None)

    def to_json(self) -> dict[str, Any]:
        prices = {"limit_price": self.limit_price, "stop_price": self.stop_price}
        return {str(self.kind): given(quantity=self.quantity, **prices, time_in_force=self.time_in_force)}

    def changed(
        self,
        *,
        quantity: Number | None = None,
        limit: Number | None = None,
        stop: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
    ) -> "OrderSpec":
        """The same with these in place of the former; `quantity` is the new total, fills included."""
        numbers = {"quantity": quantity, "limit_price": limit, "stop_price": stop}
        changes: dict[str, Any] = {name: decimal_of(value) for name, value in numbers.items() if value is not None}
        if time_in_force is not None:
            changes["time_in_force"] = TimeInForce(time_in_force)
        return replace(self, **changes)


@dataclass(frozen=True)
class NewOrder:
    """An order to submit. Make one of a kind: `Market`, `Limit`, `Stop` or `StopLimit`; or a group of them."""

    symbol: str
    order_side: Side
    spec: OrderSpec
    client_id: str | None = None
    """The caller's own id of the order, unique in the account for ever."""
    tags: tuple[str, ...] = ()
    route_strategy: RouteStrategy | None = None

    def to_json(self) -> dict[str, Any]:
        """The payload of a CREATE."""
        about = given(client_id=self.client_id, tags=self.tags or None, route_strategy=self.route_strategy)
        return {"symbol": self.symbol, "order_side": str(self.order_side), "spec": self.spec.to_json(), **about}


class _Kind(NewOrder):
    """What the kinds share: they differ in their prices."""

    def _fill(
        self,
        symbol: str,
        side: Side | str,
        spec: OrderSpec,
        client_id: str | None,
        tags: Iterable[str],
        route: str | None,
    ) -> None:
        super().__init__(symbol, Side(side), spec, client_id, tuple(tags), RouteStrategy(route) if route else None)


def _spec(
    kind: OrderKind,
    quantity: Number,
    time_in_force: TimeInForce | str | None,
    *,
    limit: Number | None = None,
    stop: Number | None = None,
) -> OrderSpec:
    held = TimeInForce(time_in_force) if time_in_force else None
    return OrderSpec(kind, decimal_of(quantity), _price(limit), _price(stop), held)


class Market(_Kind):
    """An order at whatever the market pays."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number,
        *,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        self._fill(symbol, side, _spec(OrderKind.MARKET, quantity, time_in_force), client_id, tags, route_strategy)


class Limit(_Kind):
    """An order at this price or a better one."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number,
        *,
        limit: Number,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        spec = _spec(OrderKind.LIMIT, quantity, time_in_force, limit=limit)
        self._fill(symbol, side, spec, client_id, tags, route_strategy)


class Stop(_Kind):
    """A market order as soon as the price is reached."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number,
        *,
        stop: Number,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        spec = _spec(OrderKind.STOP, quantity, time_in_force, stop=stop)
        self._fill(symbol, side, spec, client_id, tags, route_strategy)


class StopLimit(_Kind):
    """A limit order as soon as the stop price is reached."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number,
        *,
        stop: Number,
        limit: Number,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        spec = _spec(OrderKind.STOP_LIMIT, quantity, time_in_force, limit=limit, stop=stop)
        self._fill(symbol, side, spec, client_id, tags, route_strategy)


def order_of(
    symbol: str,
    side: Side,
    quantity: Number,
    *,
    limit: Number | None,
    stop: Number | None,
    time_in_force: TimeInForce | str | None,
    client_id: str | None,
    tags: Iterable[str],
    route_strategy: RouteStrategy | str | None,
) -> NewOrder:
    """The kind of order that these prices make."""
    kind = _KINDS[limit is not None, stop is not None]
    spec = _spec(kind, quantity, time_in_force, limit=limit, stop=stop)
    route = RouteStrategy(route_strategy) if route_strategy else None
    return NewOrder(symbol, side, spec, client_id, tuple(tags), route)


_KINDS = {
    (False, False): OrderKind.MARKET,
    (True, False): OrderKind.LIMIT,
    (False, True): OrderKind.STOP,
    (True, True): OrderKind.STOP_LIMIT,
}
