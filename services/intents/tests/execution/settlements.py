"""An intent of which a test settles inputs: as it was locked, what its broker reports, and what has come of it."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from intents.execution.client_order_id import client_order_id
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import BrokerReport, ExecutionInput
from intents.execution.model.locked_intent import BrokerOrder, Command, LockedIntent, Progress
from intents.execution.model.settlement import Settlement
from intents.execution.model.settling import apply_input
from intents.model import Intent, Spec, Status
from tip_brokers import Execution, Order, OrderStatus, RejectionNotice

from .sending import NOW, leased_command

ACCOUNT, INTENT, CREATE, CHANGE = uuid4(), uuid4(), uuid4(), uuid4()
FIRST, SECOND = client_order_id(CREATE), client_order_id(CHANGE)
TOTAL = Decimal(10)


def spec(quantity: str = "10") -> Spec:
    return Spec("Limit", {"quantity": quantity, "limit_price": "5", "time_in_force": "DAY"})


def locked(status: Status = Status.PENDING, command: Command | None = None, **progress: Any) -> LockedIntent:
    accepted = status not in (Status.PENDING, Status.SUBMITTED)
    intent = Intent(
        id=INTENT, symbol="ABC", order_side="BUY", route_strategy="AUTO", spec=spec(), quantity=TOTAL, status=status,
        filled_quantity=Decimal(0), average_fill_price=None, broker_order_id="b1" if accepted else None,
        reason_code=None, outcome=None, version=1, created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    first = BrokerOrder(FIRST, 1, "b1" if accepted else None, "STARTED", set(), *[Decimal(0)] * 3)
    create = Command(CREATE, 1, "CREATE", spec())
    values: dict[str, Any] = {
        "lease_token": None, "next_attempt_at": NOW, "submit_started_at": None, "accepted_at": None, "attempts": 0,
        "open_actions": 1 if command or not accepted else 0, "done_sequence": 0,
    }  # fmt: skip
    unsettled = command or (None if accepted else create)
    return LockedIntent(ACCOUNT, intent, {FIRST: first}, unsettled, Progress(**(values | progress)), NOW)


def begun(status: Status = Status.PENDING, command: Command | None = None, **progress: Any) -> Settlement:
    return Settlement.begin(locked(status, command, **progress))


def settle(settlement: Settlement, inputs: Iterable[ExecutionInput]) -> None:
    for given in inputs:
        apply_input(settlement, given)


def order(status: OrderStatus, filled: Decimal | int = 0, name: str = FIRST, number: str = "b1", **more: Any) -> Order:
    price = Decimal(5) if filled else None
    return Order(name, number, status, "ABC", "BUY", "Limit", TOTAL, Decimal(filled), price, NOW, NOW, **more)


def reported(
    shown: Order, execution: Execution | None = None, rejection: RejectionNotice | None = None
) -> BrokerReport:
    return BrokerReport(ACCOUNT, shown, NOW, execution, rejection)


def execution(number: int, quantity: Decimal | int) -> Execution:
    return Execution(f"e{number}", "b1", Decimal(quantity), Decimal(5), NOW)


def traded(settlement: Settlement) -> Decimal:
    trades = [event for event in settlement.events if event["type"] == "BROKER_TRADE"]
    return sum((Decimal(event["payload"]["quantity"]) for event in trades), Decimal(0))


@st.composite
def stories(draw: st.DrawFn, *, unpriced: bool = False) -> tuple[list[BrokerReport], Decimal]:
    """All reports of an order filled in parts: each fill with and without its total, and reconciliations; `unpriced`:
    also such as show no average price."""
    parts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    reports: list[BrokerReport] = []
    total = Decimal(0)
    for number, part in enumerate(parts):
        total += part
        status = OrderStatus.FILLED if total >= TOTAL else OrderStatus.WORKING
        whole, bare = order(status, total), order(OrderStatus.WORKING)
        reports += [reported(whole, execution(number, part)), reported(bare, execution(number, part)), reported(whole)]
        reports += [reported(replace(whole, average_price=None))] if unpriced else []
    return draw(st.permutations(reports + draw(st.lists(st.sampled_from(reports), max_size=5)))), total


def leased(token: Any, **more: Any) -> LeasedCommand:
    values = {"account_id": ACCOUNT, "intent_id": INTENT, "lease_token": token, "action_id": CREATE, "spec": spec()}
    return leased_command(**(values | more))


def replacing(quantity: str = "15") -> Settlement:
    settlement = begun(Status.PENDING_REPLACE, Command(CHANGE, 2, "REPLACE", spec(quantity)), done_sequence=1)
    settlement.orders[SECOND] = BrokerOrder(SECOND, 2, None, "STARTED", set(), *[Decimal(0)] * 3)
    return settlement


def notes(settlement: Settlement) -> list[tuple[str, str | None]]:
    """Broker order events by reason and order."""
    events = [event for event in settlement.events if event["type"] == "BROKER_ORDER"]
    return [(event["payload"]["reason_code"], event["payload"]["broker_order_id"]) for event in events]
