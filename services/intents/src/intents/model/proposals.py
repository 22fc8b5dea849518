"""Commands as controls judge them."""

from decimal import Decimal

import control_rules
from intents.model import errors
from intents.model.actions import Intent
from intents.model.orders import Create, Replace, Spec
from intents.model.submit_facts import SubmitFacts


def proposed(facts: SubmitFacts, command: Create | Replace) -> control_rules.Command:
    """The command as controls judge it."""
    if isinstance(command, Create):
        return created(command)
    if facts.intent is None:
        raise errors.IntentNotFound("The intent of this command is gone.")
    return replaced(facts.intent, command.spec)


def created(command: Create) -> control_rules.Command:
    return control_rules.Command(
        control_rules.CommandType.CREATE,
        command.symbol,
        control_rules.OrderSide(command.order_side),
        command.spec.quantity,
        limit_price=command.spec.price("limit_price"),
        stop_price=command.spec.price("stop_price"),
        trail_amount=command.spec.price("trail_amount"),
        trail_percent=command.spec.price("trail_percent"),
        notional=command.spec.notional,
    )


def counted_quantity(facts: SubmitFacts, command: Create) -> Decimal:
    """By which the order counts; of one by its notional an estimate, never below zero."""
    price = facts.controls.usable_price(facts.now) if facts.controls else None
    return created(command).counted(price).quantity


def replaced(intent: Intent, spec: Spec) -> control_rules.Command:
    return control_rules.Command(
        control_rules.CommandType.REPLACE,
        intent.symbol,
        control_rules.OrderSide(intent.order_side),
        spec.quantity,
        limit_price=spec.price("limit_price"),
        stop_price=spec.price("stop_price"),
        filled_quantity=intent.filled_quantity,
        trail_amount=spec.price("trail_amount"),
        trail_percent=spec.price("trail_percent"),
    )
