"""What the fills and ends of one leg of an order group make of the others.

Children are armed when their parent has ended with something filled, for just that, and end with a parent that has
filled nothing. What one sibling has filled is no longer there for the other: its quantity follows, and with nothing
left it is canceled. All of it is written by the transaction that records the fill or the end.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from intents.execution.model.leg_adoption import adopt_shown
from intents.execution.model.locked_intent import LockedGroup
from intents.execution.model.settlement import Settlement, append_note, append_order_event, apply_report
from intents.execution.model.verdicts import GROUP_OVERFILLED, GROUP_UNCOVERED, PARENT_ENDED
from intents.model import TERMINAL, Intent, Spec, Status, Update
from intents.model.groups import (
    EXITS,
    PARENTS,
    ROLES,
    WAITING_FOR_SIBLING,
    leads,
    waits_for_parent,
    waits_for_sibling,
)
from intents.model.reports import Report

_ZERO = Decimal(0)


class Excess(NamedTuple):
    """By how much the legs of a group have filled more than they were for."""

    account_id: UUID
    group_id: UUID
    intent_id: UUID
    quantity: Decimal


@dataclass(slots=True)
class Arrangement:
    """What is left to be written of groups beside the settlements of their legs."""

    cancels: list[Settlement] = field(default_factory=list)
    """Legs for which the others have left nothing."""
    excesses: list[Excess] = field(default_factory=list)
    armed: int = 0


@dataclass(slots=True)
class _Legs:
    group: LockedGroup
    parent: Settlement | None
    exits: list[Settlement]
    """In the order of roles."""

    @property
    def base(self) -> Decimal:
        """How much the exits are for, all together."""
        return self.parent.intent.filled_quantity if self.parent else self.group.quantity

    @property
    def closed(self) -> Decimal:
        return sum((leg.intent.filled_quantity for leg in self.exits), _ZERO)

    @property
    def is_fixed(self) -> bool:
        """Whether the exits are one order that is at the broker, or on its way: it is for what it is for."""
        return self.group.paired and any(
            leg.intent.broker_order_id or leg.progress.submit_started_at for leg in self.exits
        )

    @property
    def all(self) -> list[Settlement]:
        return [*([self.parent] if self.parent else []), *self.exits]


def arrange(settlements: Iterable[Settlement]) -> Arrangement:
    """Let what was settled act on the other legs of its groups, of which all are given."""
    arrangement, settled = Arrangement(), list(settlements)
    after_all = 1 + max((settlement.rank for settlement in settled), default=0)
    for legs in _groups(settled):
        for leg in legs.all:
            leg.rank = after_all
        _arrange_one(legs, arrangement)
    return arrangement


def _groups(settlements: Iterable[Settlement]) -> list[_Legs]:
    found: dict[tuple[UUID, UUID], list[Settlement]] = defaultdict(list)
    for settlement in settlements:
        if settlement.locked.group and settlement.intent.group_role in (PARENTS | EXITS):
            found[settlement.locked.account_id, settlement.locked.group.id].append(settlement)
    return [_legs(legs) for legs in found.values()]


def _legs(legs: list[Settlement]) -> _Legs:
    by_role: Mapping[str | None, Settlement] = {leg.intent.group_role: leg for leg in legs}
    [group] = {leg.locked.group for leg in legs if leg.locked.group}
    parent = next((leg for role, leg in by_role.items() if role in PARENTS), None)
    return _Legs(group, parent, [by_role[role] for role in ROLES if role in EXITS and role in by_role])


def _arrange_one(legs: _Legs, arrangement: Arrangement) -> None:
    if legs.parent and legs.parent.intent.status in TERMINAL:
        for child in legs.exits:
            arrangement.armed += _let_go(child, legs.base, follows=legs.group.paired and not leads(child.intent.spec))
    if legs.group.paired:
        _release_follower(legs.exits)
    for leg in legs.exits:
        left = legs.base - (legs.closed - leg.intent.filled_quantity)
        if not _is_working(leg):
            continue
        if left > leg.intent.filled_quantity:
            _resize(leg, min(left, leg.intent.quantity) if legs.is_fixed else left)
        elif _has_filled(legs.all):
            arrangement.cancels.append(leg)
    _count_one(legs.exits)
    _report_excess(legs, arrangement)
    _report_uncovered(legs)


def _let_go(child: Settlement, filled: Decimal, *, follows: bool) -> bool:
    """Arm the child for what its parent has filled, or end it with a parent that has filled nothing. One that follows
    its sibling goes with that one's order."""
    if not waits_for_parent(child.intent) or child.intent.status is not Status.PENDING:
        return False
    if not filled:
        reason = "The order that it waited for has ended without a fill."
        apply_report(child, Report(Update.CANCELED, child.now, reason_code=PARENT_ENDED, reason=reason))
        return False
    code = WAITING_FOR_SIBLING if follows else None
    child.intent = replace(_for(child, filled), reason_code=code, armed_at=child.now)
    if not follows:
        child.progress.open_actions, child.progress.next_attempt_at = 1, child.now
    report = Report(Update.SUBMITTED, child.now, reason="The order that it waited for is filled: it is sent.")
    append_order_event(child, child.intent.status, report)
    return True


def _release_follower(exits: Iterable[Settlement]) -> None:
    """Whatever became of the order that was to take it along, its own command finds out: it is part of that order, or
    is to be sent by itself. What is shown as part of it is the follower's at once, so that no report of it is lost."""
    by_lead = {leads(leg.intent.spec): leg for leg in exits}
    leader, follower = by_lead.get(True), by_lead.get(False)
    if leader is None or follower is None:
        return
    if waits_for_sibling(follower.intent) and _is_settled(leader):
        follower.intent = replace(follower.intent, reason_code=None, updated_at=follower.now)
        follower.progress.open_actions, follower.progress.next_attempt_at = 1, follower.now
    adopt_shown(leader, follower)


def _is_settled(leader: Settlement) -> bool:
    """Whether it is known what became of its CREATE, which is its first command."""
    return leader.intent.status in TERMINAL or leader.progress.done_sequence > 0


def _resize(leg: Settlement, quantity: Decimal) -> None:
    """What is at the broker follows: the order is replaced where it asks for something else."""
    if quantity == leg.intent.quantity:
        return
    leg.intent = _for(leg, quantity)
    report = Report(Update.SUBMITTED, leg.now, reason="Its quantity follows what the other orders of its group filled.")
    append_order_event(leg, leg.intent.status, report)


def _for(leg: Settlement, quantity: Decimal) -> Intent:
    spec = leg.intent.spec
    changed = Spec(spec.kind, {**spec.terms, "quantity": format(quantity, "f")})
    return replace(leg.intent, quantity=quantity, spec=changed, updated_at=leg.now)


def _is_working(leg: Settlement) -> bool:
    """Whether something may still be filled of it, and no CANCEL is on its way."""
    ending = leg.intent.status in TERMINAL or leg.intent.status is Status.PENDING_CANCEL
    return not ending and not waits_for_parent(leg.intent)


def _has_filled(legs: Iterable[Settlement]) -> bool:
    """Whether something was filled just now. A CANCEL that the broker rejects is repeated later, and not at once."""
    return any(leg.intent.filled_quantity != leg.locked.intent.filled_quantity for leg in legs)


def _count_one(exits: Iterable[Settlement]) -> None:
    """Limits count one of those that are open: the others exclude each other."""
    counted = False
    for leg in exits:
        if leg.intent.status in TERMINAL or waits_for_parent(leg.intent):
            continue
        if leg.intent.uncounted != counted:
            leg.intent = replace(leg.intent, uncounted=counted)
        counted = True


def _report_excess(legs: _Legs, arrangement: Arrangement) -> None:
    """More was filled than the group was for: siblings were filled at once."""
    excess = legs.closed - legs.base
    filled = [leg for leg in legs.exits if _has_filled([leg])]
    if excess <= max(_ZERO, legs.group.excess_quantity) or not filled:
        return
    reason = f"The orders of its group have filled {excess:f} more than they were for."
    append_note(filled[-1], Report(Update.SUBMITTED, filled[-1].now, reason_code=GROUP_OVERFILLED, reason=reason))
    found = filled[-1].locked.account_id, legs.group.id, filled[-1].intent.id
    arrangement.excesses.append(Excess(*found, excess))


def _report_uncovered(legs: _Legs) -> None:
    """What a parent has filled when its children have ended, are being canceled, or are one order at the broker, is
    closed by none of them; nor is the rest when that order ends."""
    parent, left = legs.parent, legs.base - legs.closed
    ending = all(leg.intent.status in TERMINAL or leg.intent.status is Status.PENDING_CANCEL for leg in legs.exits)
    is_late = (ending or legs.is_fixed) and parent is not None and _has_filled([parent])
    if parent is None or left <= 0 or not (is_late or _have_ended_as_one(legs)):
        return
    if not ending:
        left = parent.intent.filled_quantity - parent.locked.intent.filled_quantity
    reason = f"No order of its group closes {left:f} of what it has filled."
    append_note(parent, Report(Update.SUBMITTED, parent.now, reason_code=GROUP_UNCOVERED, reason=reason))


def _have_ended_as_one(legs: _Legs) -> bool:
    """Whether the last of two exits that are one order has just ended: where each is its own, one may stay."""
    ended = all(leg.intent.status in TERMINAL for leg in legs.exits)
    return legs.group.paired and ended and any(leg.locked.intent.status not in TERMINAL for leg in legs.exits)
