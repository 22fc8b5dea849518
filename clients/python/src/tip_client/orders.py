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


_PRICES = ("limit_price", "stop_price", "trail_amount", "trail_percent", "notional")


def _price(value: Number | None) -> Decimal | None:
    return None if value is None else decimal_of(value)


@dataclass(frozen=True)
class OrderSpec:
    """What is ordered, apart from symbol and side: kind, quantity, prices, time in force."""

    kind: OrderKind
    quantity: Decimal | None
    """None of a Market order by its notional."""
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    time_in_force: TimeInForce | None = None
    trail_amount: Decimal | None = None
    """Of a trailing stop: how far its stop price stays behind the best price, as an amount or in percent of it."""
    trail_percent: Decimal | None = None
    notional: Decimal | None = None
    """What a Market order is to be worth, in place of a quantity."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "OrderSpec":
        """REST names the kind by a key, events by a field."""
        kind, terms = (data["order_kind"], data) if "order_kind" in data else next(iter(data.items()))
        held = terms.get("time_in_force")
        limit, stop, *others = (_price(terms.get(name)) for name in _PRICES)
        time_in_force, quantity = TimeInForce(held) if held else None, terms.get("quantity")
        return cls(OrderKind(kind), Decimal(quantity) if quantity else None, limit, stop, time_in_force, *others)

    def to_json(self) -> dict[str, Any]:
        prices = {name: getattr(self, name) for name in _PRICES}
        return {str(self.kind): given(quantity=self.quantity, **prices, time_in_force=self.time_in_force)}

    def changed(
        self,
        *,
        quantity: Number | None = None,
        limit: Number | None = None,
        stop: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
        trail: Number | None = None,
        trail_percent: Number | None = None,
    ) -> "OrderSpec":
        """The same with these in place of the former; `quantity` is the new total, fills included."""
        numbers = {"quantity": quantity, "limit_price": limit, "stop_price": stop}
        numbers |= {"trail_amount": trail, "trail_percent": trail_percent}
        changes: dict[str, Any] = {name: decimal_of(value) for name, value in numbers.items() if value is not None}
        if time_in_force is not None:
            changes["time_in_force"] = TimeInForce(time_in_force)
        return replace(self, **changes)


@dataclass(frozen=True)
class NewOrder:
    """An order to submit. Make one of a kind: `Market`, `Limit`, `Stop`, `StopLimit`, `TrailingStop`; or a group."""

    symbol: str
    order_side: Side
    spec: OrderSpec
    client_id: str | None = None
    """The caller's own id of the order, unique in the account for ever."""
    tags: tuple[str, ...] = ()
    route_strategy: RouteStrategy | None = None
    extended_hours: bool = False
    """Whether it may trade outside the regular hours."""

    def to_json(self) -> dict[str, Any]:
        """The payload of a CREATE."""
        about = given(client_id=self.client_id, tags=self.tags or None, route_strategy=self.route_strategy)
        about |= {"extended_hours": True} if self.extended_hours else {}
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
        *,
        extended_hours: bool = False,
    ) -> None:
        chosen = RouteStrategy(route) if route else None
        super().__init__(symbol, Side(side), spec, client_id, tuple(tags), chosen, extended_hours)


def _spec(
    kind: OrderKind,
    quantity: Number | None,
    time_in_force: TimeInForce | str | None,
    *,
    limit: Number | None = None,
    stop: Number | None = None,
    trail: Number | None = None,
    trail_percent: Number | None = None,
    notional: Number | None = None,
) -> OrderSpec:
    if (quantity is None) == (notional is None):
        raise ConfigurationError("An order has a quantity or a notional, and not both.")
    if notional is not None and kind is not OrderKind.MARKET:
        raise ConfigurationError("Only an order at the market has a notional.")
    held = TimeInForce(time_in_force) if time_in_force else None
    others = map(_price, (trail, trail_percent, notional))
    return OrderSpec(kind, _price(quantity), _price(limit), _price(stop), held, *others)


class Market(_Kind):
    """An order at whatever the market pays: of a quantity, or for so much money (`notional`)."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number | None = None,
        *,
        notional: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        spec = _spec(OrderKind.MARKET, quantity, time_in_force, notional=notional)
        self._fill(symbol, side, spec, client_id, tags, route_strategy)


class Limit(_Kind):
    """An order at this price or a better one; outside the regular hours, too, if that is wanted."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number,
        *,
        limit: Number,
        extended_hours: bool = False,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        spec = _spec(OrderKind.LIMIT, quantity, time_in_force, limit=limit)
        self._fill(symbol, side, spec, client_id, tags, route_strategy, extended_hours=extended_hours)


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


class TrailingStop(_Kind):
    """A market order as soon as the price has turned by so much from its best since: `trail`, or `trail_percent`."""

    def __init__(
        self,
        symbol: str,
        side: Side | str,
        quantity: Number,
        *,
        trail: Number | None = None,
        trail_percent: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
    ) -> None:
        if (trail is None) == (trail_percent is None):
            raise ConfigurationError("A trailing stop has a trail or a trail_percent, and not both.")
        trails = {"trail": trail, "trail_percent": trail_percent}
        spec = _spec(OrderKind.TRAILING_STOP, quantity, time_in_force, **trails)
        self._fill(symbol, side, spec, client_id, tags, route_strategy)


def order_of(
    symbol: str,
    side: Side,
    quantity: Number | None,
    *,
    limit: Number | None,
    stop: Number | None,
    time_in_force: TimeInForce | str | None,
    client_id: str | None,
    tags: Iterable[str],
    route_strategy: RouteStrategy | str | None,
    trail: Number | None = None,
    trail_percent: Number | None = None,
    notional: Number | None = None,
    extended_hours: bool = False,
) -> NewOrder:
    """The kind of order that these prices make."""
    kind = _kind_of(limit, stop, trail, trail_percent)
    prices = {"limit": limit, "stop": stop, "trail": trail, "trail_percent": trail_percent, "notional": notional}
    spec = _spec(kind, quantity, time_in_force, **prices)
    route = RouteStrategy(route_strategy) if route_strategy else None
    return NewOrder(symbol, side, spec, client_id, tuple(tags), route, extended_hours)


_KINDS = {
    (False, False): OrderKind.MARKET,
    (True, False): OrderKind.LIMIT,
    (False, True): OrderKind.STOP,
    (True, True): OrderKind.STOP_LIMIT,
}


def _kind_of(
    limit: Number | None, stop: Number | None, trail: Number | None, trail_percent: Number | None
) -> OrderKind:
    trails = [value for value in (trail, trail_percent) if value is not None]
    if not trails:
        return _KINDS[limit is not None, stop is not None]
    if len(trails) > 1 or limit is not None or stop is not None:
        raise ConfigurationError("A trailing stop has one trail, and neither a limit nor a stop price.")
    return OrderKind.TRAILING_STOP
