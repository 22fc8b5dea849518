"""What is known when a command is to be sent: an account on which nothing speaks against it, unless a test says so."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import control_rules
from intents.execution.model.commands import ClaimSnapshot, LeasedCommand
from intents.model import Account, Intent, Spec, Status, SubmitFacts
from tip_broker_alpaca import PAPER

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ORGANIZATION = uuid4()
HALTED = control_rules.Switch(control_rules.TradingState.HALTED, 1)
LIMIT = Spec("Limit", {"quantity": "10", "limit_price": "5", "time_in_force": "DAY"})


def an_intent(status: Status = Status.PENDING, spec: Spec = LIMIT, filled: int = 0) -> Intent:
    return Intent(
        id=uuid4(), symbol="ABC", order_side="BUY", route_strategy="AUTO", spec=spec, quantity=spec.quantity,
        status=status, filled_quantity=Decimal(filled), average_fill_price=None, broker_order_id=None,
        reason_code=None, outcome=None, version=1, created_at=NOW, updated_at=NOW,
    )  # fmt: skip


def sending_facts(
    organization_id: UUID = ORGANIZATION, environment: str = "paper", intent: Intent | None = None, **controls: Any
) -> SubmitFacts:
    account = Account(uuid4(), organization_id, environment, "paper", PAPER.capabilities)
    rules = control_rules.Facts("UTC", account_disabled=False, account_version=1)
    return SubmitFacts(NOW, account, intent or an_intent(), controls=replace(rules, **controls))


def leased_command(**more: Any) -> LeasedCommand:
    """A CREATE that was just accepted."""
    values: dict[str, Any] = {
        "account_id": uuid4(), "organization_id": ORGANIZATION,
        "intent_id": uuid4(), "lease_token": uuid4(), "lease_ends": 0.0, "now": NOW,
        "action_id": uuid4(), "type": "CREATE", "created_at": NOW, "symbol": "ABC", "order_side": "BUY",
        "spec": LIMIT, "quantity": Decimal(10), "filled_quantity": Decimal(0),
        "status": Status.PENDING, "broker_order_id": None, "orders": (), "started_before": None, "attempts": 0,
        "absences": 0, "broker": "paper", "environment": "paper", "lane": "paper paper", "submitted_at": NOW,
        "is_own": False,
        "facts": sending_facts(more.get("organization_id", ORGANIZATION), more.get("environment", "paper")),
        "entitlements": frozenset(), "credential": None, "bound_credential": None, "opened_account": None,
        "snapshot": ClaimSnapshot(0.0, 1, "AUTO", None, 1, NOW, 1, 0, None),
    }  # fmt: skip
    return LeasedCommand(**(values | more))
