"""Two exits that are one order at the broker: which of the broker's orders is the stop."""

from collections.abc import Sequence
from typing import NamedTuple

from intents.execution.client_order_id import is_duplicate, is_ours
from intents.execution.model.commands import LeasedCommand, Pair
from intents.execution.model.verdicts import OPERATOR_REQUIRED, LegFound, RetryLater
from intents.model import Intent
from tip_brokers.protocol import Order, OrderStatus

LEG_SECONDS = 2.0  # until a broker that does not show the leg of an order is queried again
LOOKS = 3
"""After so many a person has to find out what became of the leg: nobody knows whether the position has its stop."""


class Wanted(NamedTuple):
    """What a leg has to be to be the stop."""

    symbol: str
    order_side: str
    kind: str

    @classmethod
    def by(cls, stop: LeasedCommand | Intent) -> "Wanted":
        return cls(stop.symbol, stop.order_side, stop.spec.kind)


def find_leg(command: LeasedCommand, leader: Pair, found: Sequence[Order]) -> LegFound | RetryLater | None:
    """The order as part of the leader's, which the broker shows as `found`, with what it was replaced by; None if it is
    not part of that."""
    legs = [leg for order in found if (leg := leg_of(order.legs, Wanted.by(command)))]
    if legs:
        return LegFound(legs[-1])
    return not_shown(command) if _is_pair(leader, found) else None


def not_shown(command: LeasedCommand) -> RetryLater:
    code = OPERATOR_REQUIRED if command.absences >= LOOKS else None
    return RetryLater(LEG_SECONDS, "The broker does not show the stop of the pair.", code, absent=True)


def leg_of(legs: Sequence[Order] | None, wanted: Wanted) -> Order | None:
    """The only leg that can be it. A name of ours is that of another order, whatever the broker says."""
    like = [leg for leg in legs or () if _is_like(leg, wanted) and may_be_leg(leg.client_order_id)]
    return like[0] if len(like) == 1 else None


def may_be_leg(client_order_id: str) -> bool:
    """Whether it can be of the broker's making."""
    return not (is_ours(client_order_id) or is_duplicate(client_order_id))


def _is_pair(leader: Pair, found: Sequence[Order]) -> bool:
    """Whether the stop may be part of it. Of an order that was replaced only the one in its place says that it is
    alone."""
    if not found:
        return leader.is_accepted
    is_replaced = all(order.status is OrderStatus.REPLACED for order in found)
    return is_replaced or any(order.legs is not None for order in found)


def _is_like(leg: Order, wanted: Wanted) -> bool:
    return Wanted(leg.symbol, leg.order_side, leg.kind) == wanted
