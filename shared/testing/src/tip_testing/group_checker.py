"""What must be true of order groups, by the rows of the database and the books of a broker; the platform's own code is
not imported.

`books` has the orders of each intent at the broker: `qty`, `filled_qty`, and `open`, whether it may still be filled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

TERMINAL = frozenset({"FILLED", "CANCELED", "REJECTED", "DENIED", "EXPIRED", "FAILED"})
LEGS = {
    "Bracket": ["entry", "take_profit", "stop_loss"],
    "OneCancelsOther": ["one", "other"],
    "OneTriggersOther": ["parent", "child"],
}
PARENTS, EXITS = ("entry", "parent"), ("take_profit", "stop_loss", "one", "other", "child")
Books = Mapping[UUID, Sequence[Mapping[str, Any]]]

_LEGS = text("""
    SELECT g.id AS group_id, g.kind, g.quantity AS group_quantity, g.excess_quantity, g.flattened_quantity,
           i.id, i.group_role, i.status, i.filled_quantity, i.armed_at, i.symbol, i.order_side,
           CASE WHEN i.status IN ('PENDING_REPLACE', 'PENDING_CANCEL') THEN greatest(i.quantity, i.replace_quantity)
                ELSE i.quantity END AS quantity,
           (SELECT count(*) FROM intents.account_event e
            WHERE e.intent_id = i.id AND e.payload ->> 'reason_code' = 'GROUP_OVERFILLED') AS reports
    FROM intents.intent_group g JOIN intents.intent i ON i.account_id = g.account_id AND i.group_id = g.id
    WHERE g.account_id = :account_id
""")
_OTHERS = text("""
    SELECT symbol, order_side, sum(greatest(0, quantity - filled_quantity)) AS quantity FROM intents.intent
    WHERE account_id = :account_id AND group_id IS NULL AND status NOT IN
        ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED')
    GROUP BY symbol, order_side
""")
_TOTALS = text("""
    SELECT symbol, open_buy_quantity, open_sell_quantity FROM intents.order_total
    WHERE account_id = :account_id AND symbol <> ''
""")


@dataclass
class Leg:
    role: str
    status: str
    quantity: Decimal
    filled: Decimal
    armed: bool
    symbol: str
    side: str
    reports: int
    booked: Sequence[Mapping[str, Any]]

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def left(self) -> Decimal:
        return Decimal(0) if self.ended else max(Decimal(0), self.quantity - self.filled)

    @property
    def filled_at_broker(self) -> Decimal:
        return sum((Decimal(order["filled_qty"]) for order in self.booked), Decimal(0))

    @property
    def open_at_broker(self) -> Decimal:
        left = (Decimal(order["qty"]) - Decimal(order["filled_qty"]) for order in self.booked if order["open"])
        return sum(left, Decimal(0))


@dataclass
class Group:
    id: UUID
    kind: str
    quantity: Decimal
    excess: Decimal
    flattened: Decimal
    legs: dict[str, Leg] = field(default_factory=dict)
    flattening: list[Leg] = field(default_factory=list)

    @property
    def parent(self) -> Leg | None:
        return next((leg for role, leg in self.legs.items() if role in PARENTS), None)

    @property
    def exits(self) -> list[Leg]:
        return [self.legs[role] for role in EXITS if role in self.legs]

    @property
    def base(self) -> Decimal:
        return self.parent.filled if self.parent else self.quantity

    @property
    def closed(self) -> Decimal:
        return sum((leg.filled for leg in self.exits), Decimal(0))


def read_groups(connection: Connection, account_id: UUID, books: Books) -> list[Group]:
    groups: dict[UUID, Group] = {}
    for row in connection.execute(_LEGS, {"account_id": account_id}):
        about = (row.group_id, row.kind, row.group_quantity, row.excess_quantity, row.flattened_quantity)
        group = groups.setdefault(row.group_id, Group(*about))
        state = (row.group_role, row.status, row.quantity, row.filled_quantity, row.armed_at is not None)
        leg = Leg(*state, row.symbol, row.order_side, row.reports, books.get(row.id, ()))
        if leg.role == "flatten":
            group.flattening.append(leg)
        else:
            group.legs[leg.role] = leg
    return list(groups.values())


def always(group: Group) -> list[str]:
    """What holds at every moment, whatever has not been seen, sent or received yet."""
    found = []
    if sorted(group.legs) != sorted(LEGS[group.kind]):
        found.append(f"has the legs {sorted(group.legs)}")
    found += _of_parent(group, group.parent) if group.parent else []
    excess = group.closed - group.base
    reports = sum(leg.reports for leg in group.exits)
    if excess > 0 and (group.excess < excess or not reports):
        found.append(f"filled {excess} too much, of which {group.excess} is noted by {reports} events")
    if sum((leg.quantity for leg in group.flattening), Decimal(0)) != group.flattened or group.flattened > group.excess:
        found.append(f"flattened {group.flattened} of {group.excess} by {len(group.flattening)} orders")
    return [f"{group.kind} {group.id} {fault}" for fault in found]


def _of_parent(group: Group, parent: Leg) -> list[str]:
    found = []
    for child in group.exits:
        if parent.ended and not child.armed and not (child.ended or child.status == "PENDING_CANCEL"):
            found.append(f"has a parent that ended with {parent.filled} filled, and its {child.role} still waits")
        if not parent.ended and (child.armed or child.booked):
            found.append(f"has its {child.role} at work before its parent has ended")
        if child.booked and not child.armed:
            found.append(f"has its {child.role} at the broker, which was never armed")
    return found


def at_rest(group: Group) -> list[str]:
    """What holds besides once nothing is on its way any more: the books agree, and what is open covers what is left."""
    found, left = [], group.base - group.closed
    for leg in group.legs.values():
        if leg.filled != leg.filled_at_broker:
            found.append(f"has {leg.filled} filled of its {leg.role}, {leg.filled_at_broker} at the broker")
        if leg.ended and leg.open_at_broker:
            found.append(f"has {leg.open_at_broker} open at the broker of its {leg.role}, which has ended")
    working = [leg for leg in group.exits if not leg.ended and (leg.armed or group.parent is None)]
    found += [
        f"has {leg.open_at_broker} of its {leg.role} open at the broker, {leg.left} here, of {left} left"
        for leg in working
        if leg.open_at_broker != max(Decimal(0), left) or leg.left != max(Decimal(0), left)
    ]
    return [f"{group.kind} {group.id} {fault}" for fault in found]


def totals(connection: Connection, account_id: UUID, groups: Sequence[Group]) -> list[str]:
    """Limits count one exit of each group, no child that waits, and everything else that is open."""
    expected: dict[tuple[str, str], Decimal] = {}
    for row in connection.execute(_OTHERS, {"account_id": account_id}):
        expected[row.symbol, row.order_side] = row.quantity
    for group in groups:
        working = [leg for leg in group.exits if not leg.ended and (leg.armed or group.parent is None)]
        for leg in [*working[:1], *([group.parent] if group.parent else []), *group.flattening]:
            expected[leg.symbol, leg.side] = expected.get((leg.symbol, leg.side), Decimal(0)) + leg.left
    found = []
    for row in connection.execute(_TOTALS, {"account_id": account_id}):
        wanted = [expected.get((row.symbol, side), Decimal(0)) for side in ("BUY", "SELL")]
        if wanted != [row.open_buy_quantity, row.open_sell_quantity]:
            counted = f"{row.open_buy_quantity} and {row.open_sell_quantity}"
            found.append(f"{row.symbol}: {counted} are counted as open to buy and sell, {wanted} are")
    return found
