"""Order groups: which legs each kind has, which of them waits for which, and which cancel each other.

Every leg is an intent of its own. A leg's role alone says what it does in its group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.actions import Action, Intent
from intents.model.errors import BrokerCannot
from intents.model.lifecycle import Status
from intents.model.orders import Create, OrderGroup, Spec
from intents.model.submit_facts import Account, SubmitFacts
from tip_brokers.capabilities import ExitPair, pair_inability

WAITING_FOR_PARENT = "WAITING_FOR_PARENT"
"""The reason code of a child that is not to be sent yet."""
WAITING_FOR_SIBLING = "WAITING_FOR_SIBLING"
"""The reason code of a stop that the broker gets with the limit order that excludes it, as one order."""
FLATTEN = "flatten"
LEADING_KIND = "Limit"
"""Of a pair of exits: the kind of the one under whose client order id both are sent."""


class GroupKind(NamedTuple):
    """The first leg is the one that the submit is answered with; `waiting` are sent when it is filled."""

    legs: tuple[str, ...]
    waiting: tuple[str, ...] = ()


GROUPS: Mapping[str, GroupKind] = {
    "Bracket": GroupKind(("entry", "take_profit", "stop_loss"), ("take_profit", "stop_loss")),
    "OneCancelsOther": GroupKind(("one", "other")),
    "OneTriggersOther": GroupKind(("parent", "child"), ("child",)),
}
PARENTS = frozenset({"entry", "parent"})
CHILDREN = frozenset({"take_profit", "stop_loss", "child"})
SIBLINGS = frozenset({"take_profit", "stop_loss", "one", "other"})
ROLES = (*(role for kind in GROUPS.values() for role in kind.legs), FLATTEN)
EXITS = CHILDREN | SIBLINGS
"""Roles whose quantity follows from what the others of the group have filled."""
_OPPOSITE = {"BUY": "SELL", "SELL": "BUY"}


@dataclass(frozen=True, slots=True)
class Membership:
    """What a leg's intent knows of its group. `waits`: it is not to be sent before its parent is filled; `follows`: it
    is sent with its sibling, as one order."""

    group_id: UUID
    role: str
    waits: bool = False
    follows: bool = False

    @property
    def uncounted(self) -> bool:
        """Of siblings only one counts as open, and a child that waits does not: at most one of them is ever filled."""
        return self.waits or self.role == "other"


def members(group: OrderGroup, group_id: UUID, *, paired: bool = False) -> list[Membership]:
    """Of each leg, the first leg first. `paired`: the exits that exclude each other are one order at the broker."""
    waiting = GROUPS[group.kind].waiting
    return [
        Membership(group_id, role, role in waiting, paired and role in SIBLINGS and not leads(spec))
        for role, spec in group.legs.items()
    ]


def pointer(group: OrderGroup, role: str) -> str:
    """Where the leg's spec stands in the payload."""
    return f"/spec/{group.kind}/{role}"


def are_paired(account: Account | None, command: Create, group: OrderGroup) -> bool:
    """Whether the exits that exclude each other are one order at the broker. Raises for those of which it would refuse
    the second, so that a position might have no stop."""
    exits = [spec for role, spec in group.legs.items() if role in SIBLINGS]
    if account is None or account.can is None or not exits:
        return False
    first, second = ((spec.kind, spec.time_in_force) for spec in exits)
    extended = command.extended_hours and group.kind == "OneCancelsOther"
    pair = ExitPair((first, second), command.spec.quantity, command.symbol, extended)
    if reason := pair_inability(account.can, pair):
        raise BrokerCannot(f"/command/payload/spec/{group.kind}", reason, account.broker)
    return not account.can.shared_exits


def leads(spec: Spec) -> bool:
    """Of a pair of exits: whether it is the one under whose client order id both are sent."""
    return spec.kind == LEADING_KIND


def waits_for_parent(intent: Intent) -> bool:
    return intent.group_role in CHILDREN and intent.armed_at is None


def waits_for_sibling(intent: Intent) -> bool:
    return intent.status is Status.PENDING and intent.reason_code == WAITING_FOR_SIBLING


def leg_command(command: Create, group: OrderGroup, member: Membership) -> Create:
    """The CREATE of a leg after the first, as if it had been sent by itself. What waits for a fill closes it."""
    spec = group.legs[member.role]
    side = _OPPOSITE[command.order_side] if member.role in CHILDREN else command.order_side
    extended = command.extended_hours and member.role not in CHILDREN
    more: dict[str, Any] = {"tags": list(command.tags)} if command.tags else {}
    more |= {"extended_hours": True} if extended else {}
    payload: dict[str, Any] = {
        "symbol": command.symbol,
        "order_side": side,
        "route_strategy": command.route_strategy,
        "spec": {spec.kind: dict(spec.terms)},
        **more,
    }
    names = (command.symbol, side, command.route_strategy)
    return Create(payload, *names, spec, tags=command.tags, extended_hours=extended)


def as_member(action: Action, member: Membership) -> Action:
    """The action of the leg's CREATE, whose state shows the group."""
    code = WAITING_FOR_PARENT if member.waits else WAITING_FOR_SIBLING if member.follows else None
    state = action.state._replace(reason_code=code, group_id=member.group_id, group_role=member.role)
    return replace(action, state=state)


def as_if_filled(facts: SubmitFacts, command: Create, member: Membership, *, is_counted: bool) -> SubmitFacts:
    """The facts by which a leg after the first is judged, `command` being the first, which may be counted already.

    A child is judged as if its parent were filled: what closes a position is no further risk. A sibling is judged as if
    the first were not there: only one of them is to be filled.
    """
    controls, quantity = facts.controls, command.spec.quantity
    counted = quantity if is_counted else Decimal(0)
    if controls is None or not facts.has_order_facts:
        return facts
    if member.waits:
        moved = quantity if command.order_side == "BUY" else -quantity
        position, opposite = _plus(controls.position_quantity, moved), _plus(controls.opposite_open_quantity, -counted)
        return replace(facts, controls=replace(controls, position_quantity=position, opposite_open_quantity=opposite))
    return without_siblings(facts, counted)


def without_siblings(facts: SubmitFacts, quantity: Decimal) -> SubmitFacts:
    """The facts without so much that siblings have open on the same side."""
    if facts.controls is None:
        return facts
    left = _plus(facts.controls.open_quantity, -quantity)
    return replace(facts, controls=replace(facts.controls, open_quantity=left))


def _plus(known: Decimal | None, more: Decimal) -> Decimal | None:
    return None if known is None else known + more
