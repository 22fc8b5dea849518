"""What can be requested: the order kinds as data, and the three commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

ORDER_SIDES = ("BUY", "SELL")
ROUTE_STRATEGIES = ("AUTO", "DIRECT")
TIMES_IN_FORCE = ("DAY", "GTC", "IOC", "FOK")
DEFAULT_TIME_IN_FORCE = "DAY"
CLIENT_ID_LONGEST = 64
TAG_LONGEST = 32
MOST_TAGS = 10


class CommandType(StrEnum):
    CREATE = "CREATE"
    REPLACE = "REPLACE"
    CANCEL = "CANCEL"


class Kind(NamedTuple):
    """The prices an order kind needs, and how long such an order may stand. Of each of `one_of` it has exactly one."""

    prices: tuple[str, ...]
    times_in_force: tuple[str, ...]
    one_of: tuple[tuple[str, ...], ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name in ("quantity", *self.prices) if name not in self.optional)

    @property
    def optional(self) -> tuple[str, ...]:
        return tuple(name for names in self.one_of for name in names)


KINDS: Mapping[str, Kind] = {
    "Market": Kind((), TIMES_IN_FORCE, one_of=(("quantity", "notional"),)),
    "Limit": Kind(("limit_price",), TIMES_IN_FORCE),
    "Stop": Kind(("stop_price",), ("DAY", "GTC")),
    "StopLimit": Kind(("stop_price", "limit_price"), ("DAY", "GTC")),
    "TrailingStop": Kind((), ("DAY", "GTC"), one_of=(("trail_amount", "trail_percent"),)),
}
BELOW = {"trail_percent": Decimal(100)}
"""Terms that are below a number, each: a stop that stays all of the price behind it is none."""


@dataclass(frozen=True, slots=True)
class Spec:
    """An order of one kind. Its decimals are the strings that were sent: nothing is rounded or rewritten."""

    kind: str
    terms: Mapping[str, str]

    @property
    def quantity(self) -> Decimal:
        """0 of an order by its notional: it is not known before the broker has filled it."""
        return Decimal(self.terms.get("quantity", 0))

    @property
    def notional(self) -> Decimal | None:
        return self.price("notional")

    @property
    def time_in_force(self) -> str:
        return self.terms.get("time_in_force", DEFAULT_TIME_IN_FORCE)

    def price(self, name: str) -> Decimal | None:
        text = self.terms.get(name)
        return None if text is None else Decimal(text)

    @property
    def form(self) -> frozenset[str]:
        """Which of its terms the order has, where it may have one or the other."""
        return frozenset(KINDS[self.kind].optional) & self.terms.keys()

    @property
    def as_json(self) -> dict[str, Any]:
        """With the time in force that holds when none was sent."""
        return {self.kind: {"time_in_force": DEFAULT_TIME_IN_FORCE, **self.terms}}

    @classmethod
    def from_json(cls, stored: Mapping[str, Mapping[str, str]]) -> "Spec":
        [(kind, terms)] = stored.items()
        return cls(kind, terms)


@dataclass(frozen=True, slots=True)
class OrderGroup:
    """The specs of the legs of an order group, by role, the first leg first (see `groups`)."""

    kind: str
    legs: Mapping[str, Spec]


@dataclass(frozen=True, slots=True)
class Create:
    """With a `group` it is a group's first leg, and `spec` is that leg's; the other legs are created with it."""

    payload: Mapping[str, Any]
    symbol: str
    order_side: str
    route_strategy: str
    spec: Spec
    client_id: str | None = None
    tags: Sequence[str] = ()
    extended_hours: bool = False
    group: OrderGroup | None = None
    type = CommandType.CREATE
    ref_intent_id = None


@dataclass(frozen=True, slots=True)
class Replace:
    payload: Mapping[str, Any]
    ref_intent_id: UUID
    spec: Spec
    type = CommandType.REPLACE
    symbol = None
    client_id = None


@dataclass(frozen=True, slots=True)
class Cancel:
    payload: Mapping[str, Any]
    ref_intent_id: UUID
    type = CommandType.CANCEL
    symbol = None
    spec = None
    client_id = None


@dataclass(frozen=True, slots=True)
class HoldToTotal:
    """The platform's own command: replace or cancel an order that asks for more than is left of its intent's total.

    `replacements` is how often the platform has replaced orders of the intent before.
    """

    ref_intent_id: UUID
    replacements: int
    type = CommandType.REPLACE
    symbol = None
    client_id = None


Command = Create | Replace | Cancel
"""`payload` is what was sent, for the record; the other fields are what it means."""
