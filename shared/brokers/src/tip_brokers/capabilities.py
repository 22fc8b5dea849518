"""What a broker can do, as data, and what of a command it cannot. Pure; standard library only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from tip_brokers.client_ids import ClientIds

DAY, GTC, IOC, FOK = "DAY", "GTC", "IOC", "FOK"
ALL_TIMES = (DAY, GTC, IOC, FOK)
ALL_KINDS: Mapping[str, tuple[str, ...]] = {
    "Market": ALL_TIMES,
    "Limit": ALL_TIMES,
    "Stop": (DAY, GTC),
    "StopLimit": (DAY, GTC),
}
"""The kinds of the specification: what a broker has that does not say otherwise."""
TRAILING_STOPS: Mapping[str, tuple[str, ...]] = {"TrailingStop": (DAY, GTC)}
PLATFORM_KINDS: Mapping[str, tuple[str, ...]] = {**ALL_KINDS, **TRAILING_STOPS}
"""Every kind that the platform has a word for."""


_UNPAIRED_SYMBOL = "takes no orders that cancel each other for this symbol"
NO_EXTENDED_HOURS = "takes no order for outside the regular hours"


class Replacement(StrEnum):
    """How an order becomes another one: by the broker at once, by a cancel and a new order, or not at all."""

    NATIVE = "native"
    CANCEL_AND_NEW = "cancel_and_new"
    NONE = "none"


class SymbolForm(NamedTuple):
    """How the broker writes what it trades. `pattern` covers a whole symbol."""

    pattern: str = r".+"
    example: str = "AAPL"
    exit_pairs: str = r".+"
    """The form of those for which it takes `exit_pairs`."""


ANY_SYMBOL = SymbolForm()


@dataclass(frozen=True)
class Capabilities:
    client_ids: ClientIds
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: ALL_KINDS)
    """The order kinds, each with its times in force."""
    replacement: Replacement = Replacement.NATIVE
    streams: bool = False
    """Whether it sends updates by itself. Otherwise its orders are read from time to time."""
    quotes: bool = False
    executions: bool = False
    """Whether it lists its fills, each under an id of its own. Otherwise an order's total says what is filled."""
    fractions: bool = False
    """Whether a quantity may have decimals."""
    notional_orders: tuple[str, ...] = ()
    """The times in force of a Market order by its notional, in place of a quantity; none: no such orders."""
    extended_hours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The order kinds, each with its times in force, that may trade outside the regular hours."""
    routing: bool = False
    """Whether the caller may choose where an order goes (DIRECT)."""
    shared_exits: bool = False
    """Whether two open orders may close the same position. Otherwise it is reserved for the first, and the broker
    refuses the second: orders that cancel each other cannot both rest there, unless as `exit_pairs`."""
    exit_pairs: tuple[str, ...] = ()
    """The times in force of two exits of one position that cancel each other and are sent as one order: a Limit with a
    Stop or StopLimit, for a whole quantity. None: no such orders."""
    symbols: SymbolForm = ANY_SYMBOL
    calls_per_minute: int | None = None
    """Of one account, as far as the broker says; it may answer "later" to more."""


class Requested(NamedTuple):
    """What a command asks of the broker. A replacement keeps its order's symbol and route: both are None."""

    kind: str
    time_in_force: str
    quantity: Decimal | None
    """None of an order by its notional."""
    symbol: str | None = None
    route_strategy: str | None = None
    extended_hours: bool = False

    @property
    def is_replacement(self) -> bool:
        return self.symbol is None


class ExitPair(NamedTuple):
    """Two orders that cancel each other, as a group asks for them. Each exit is the kind and the time in force."""

    exits: tuple[tuple[str, str], tuple[str, str]]
    quantity: Decimal
    symbol: str
    extended_hours: bool = False


class Inability(NamedTuple):
    """What the broker cannot do, and where in the command's payload that stands."""

    pointer: str
    detail: str


def inability(can: Capabilities, requested: Requested) -> Inability | None:
    """The first thing about the command that the broker cannot do."""
    if requested.is_replacement and can.replacement is Replacement.NONE:
        return Inability("", "replaces no orders: cancel it and create another one")
    if requested.symbol is not None and not re.fullmatch(can.symbols.pattern, requested.symbol):
        return Inability("/symbol", f"writes symbols like {can.symbols.example}")
    if requested.route_strategy == "DIRECT" and not can.routing:
        return Inability("/route_strategy", "routes orders itself: only AUTO is possible")
    return _of_spec(can, requested)


def _of_spec(can: Capabilities, requested: Requested) -> Inability | None:
    kind = requested.kind
    if kind not in can.kinds:
        return Inability("/spec", f"has no order of the kind {kind}, only {_listed(can.kinds)}")
    if requested.time_in_force not in can.kinds[kind]:
        return Inability(f"/spec/{kind}/time_in_force", f"takes a {kind} order only as {_listed(can.kinds[kind])}")
    if requested.extended_hours and requested.time_in_force not in can.extended_hours.get(kind, ()):
        return _of_extended_hours(can, requested)
    if requested.quantity is None:
        return _of_notional(can, requested)
    if not can.fractions and requested.quantity != requested.quantity.to_integral_value():
        return Inability(f"/spec/{kind}/quantity", "takes whole quantities only")
    return None


def _of_extended_hours(can: Capabilities, requested: Requested) -> Inability:
    """A replacement keeps what its order was created with, so what does not go with that is its time in force."""
    pointer = f"/spec/{requested.kind}/time_in_force" if requested.is_replacement else "/extended_hours"
    possible = "; ".join(f"{kind} ({_listed(times)})" for kind, times in can.extended_hours.items())
    return Inability(pointer, f"trades outside the regular hours only {possible}" if possible else NO_EXTENDED_HOURS)


def _of_notional(can: Capabilities, requested: Requested) -> Inability | None:
    times = can.notional_orders
    if not times:
        return Inability(f"/spec/{requested.kind}/notional", "takes no order by its notional, only by a quantity")
    if requested.time_in_force not in times:
        detail = f"takes an order by its notional only as {_listed(times)}"
        return Inability(f"/spec/{requested.kind}/time_in_force", detail)
    return None


def pair_inability(can: Capabilities, pair: ExitPair) -> str | None:
    """Why two exits of one position cannot both wait there."""
    if can.shared_exits:
        return None
    if not can.exit_pairs:
        return "reserves a position for the first order that closes it: two cannot wait to close the same one"
    return _of_pair(can, pair)


def _of_pair(can: Capabilities, pair: ExitPair) -> str | None:
    kinds, times = [kind for kind, _ in pair.exits], [time for _, time in pair.exits]
    if kinds.count("Limit") != 1 or not {"Stop", "StopLimit"} & set(kinds):
        return "takes orders that cancel each other only as a Limit with a Stop or StopLimit"
    if len(set(times)) != 1 or times[0] not in can.exit_pairs:
        return f"takes orders that cancel each other only with one time in force, {_listed(can.exit_pairs)}"
    if pair.quantity != pair.quantity.to_integral_value():
        return "takes orders that cancel each other only for whole quantities"
    if pair.extended_hours:
        return "takes orders that cancel each other only for the regular hours"
    return None if re.fullmatch(can.symbols.exit_pairs, pair.symbol) else _UNPAIRED_SYMBOL


def _listed(words: Mapping[str, object] | tuple[str, ...]) -> str:
    return ", ".join(words)
