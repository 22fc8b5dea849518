"""What a position may become: with the command filled, and with all other open orders of its side.

Filled and open quantity both count, so that orders which each keep to a limit cannot exceed it together.
"""

from decimal import Decimal

from control_rules.facts import Command, Facts, OrderSide

POSITION, OPEN_QUANTITY = "position", "quantity of the other open orders"


def furthest(facts: Facts, command: Command) -> Decimal | str:
    """How far the position may go to the command's side: below zero it stays on the other. Or the missing fact."""
    if facts.position_quantity is None:
        return POSITION
    if facts.open_quantity is None:
        return OPEN_QUANTITY
    held = facts.position_quantity if command.side is OrderSide.BUY else -facts.position_quantity
    return held + facts.open_quantity + command.leaves_quantity


def reduces(facts: Facts, command: Command) -> bool | str:
    """Whether the command, with the other open orders of its side, at most closes the position. Or the missing fact.

    Of an order by its notional nobody can say so: the market decides how much it is.
    """
    if command.notional is not None:
        return False
    after = furthest(facts, command)
    return after if isinstance(after, str) else after <= 0


def greatest(facts: Facts, command: Command) -> tuple[Decimal, Decimal] | str:
    """The greatest size, long or short, that the position may reach without the command and with it."""
    after = furthest(facts, command)
    if isinstance(after, str):
        return after
    if facts.opposite_open_quantity is None or facts.position_quantity is None:
        return OPEN_QUANTITY
    opposite = facts.opposite_open_quantity + (
        -facts.position_quantity if command.side is OrderSide.BUY else facts.position_quantity
    )
    return max(after - command.leaves_quantity, opposite), max(after, opposite)
