"""Two exits that are one order at the broker: what the stop's own command makes of the order that may have taken it."""

from intents.execution.client_order_id import is_duplicate, is_ours
from intents.execution.model.commands import LeasedCommand, Pair
from intents.execution.model.verdicts import OPERATOR_REQUIRED, LegFound, RetryLater
from tip_brokers.protocol import Order

LEG_SECONDS = 2.0  # until a broker that does not show the leg of an order is queried again
LOOKS = 3
"""After so many a person has to find out what became of the leg: nobody knows whether the position has its stop."""


def find_leg(command: LeasedCommand, leader: Pair, found: Order | None) -> LegFound | RetryLater | None:
    """The order as part of the leader's, which the broker shows as `found`; None if it is not part of that."""
    if found and (leg := _leg_of(command, found)):
        return LegFound(leg)
    is_pair = found.legs is not None if found else leader.is_accepted
    if not is_pair:
        return None
    code = OPERATOR_REQUIRED if command.absences >= LOOKS else None
    return RetryLater(LEG_SECONDS, "The broker does not show the stop of the pair.", code, absent=True)


def _leg_of(command: LeasedCommand, found: Order) -> Order | None:
    """The only leg that can be it. A name of ours is that of another order, whatever the broker says."""
    legs = [leg for leg in found.legs or () if _is_like(leg, command) and not _is_taken(leg.client_order_id)]
    return legs[0] if len(legs) == 1 else None


def _is_like(leg: Order, command: LeasedCommand) -> bool:
    return (leg.symbol, leg.order_side, leg.kind) == (command.symbol, command.order_side, command.spec.kind)


def _is_taken(name: str) -> bool:
    return is_ours(name) or is_duplicate(name)
