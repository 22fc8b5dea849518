"""What the submissions of a batch add to the facts of those that are decided after them."""

from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import control_rules
from intents.model.orders import Create
from intents.model.proposals import counted_quantity
from intents.model.submit_facts import Account, SubmitFacts

_WHOLE_ACCOUNT = ""


class BatchTotals:
    """Of each account and symbol, what was accepted since the facts were read."""

    def __init__(self) -> None:
        self._orders: Counter[tuple[UUID, str]] = Counter()
        self._quantity: defaultdict[tuple[UUID, str, str], Decimal] = defaultdict(Decimal)
        self._exposure: dict[tuple[UUID, str], Decimal | None] = {}

    def applied_to(self, facts: SubmitFacts, account: Account, command: Create) -> SubmitFacts:
        """The facts of the command, as they would be read if everything before it were written."""
        controls, symbol = facts.controls, command.symbol
        if controls is None:
            return facts
        opposite = "SELL" if command.order_side == "BUY" else "BUY"
        changed = replace(
            controls,
            account_orders=_more(controls.account_orders, self._orders[account.id, _WHOLE_ACCOUNT]),
            symbol_orders=_more(controls.symbol_orders, self._orders[account.id, symbol]),
            open_quantity=_sum(controls.open_quantity, self._quantity[account.id, symbol, command.order_side]),
            opposite_open_quantity=_sum(controls.opposite_open_quantity, self._quantity[account.id, symbol, opposite]),
            other_exposure=_sum(controls.other_exposure, self._added_elsewhere(account.id, symbol)),
        )
        return replace(facts, controls=changed)

    def add(self, facts: SubmitFacts, account: Account, command: Create) -> None:
        """Count a command that was accepted by these facts."""
        quantity, key = counted_quantity(facts, command), (account.id, command.symbol)
        self._orders.update([(account.id, _WHOLE_ACCOUNT), key])
        self._quantity[account.id, command.symbol, command.order_side] += quantity
        if facts.controls:
            side = control_rules.OrderSide(command.order_side)
            order = control_rules.Command(control_rules.CommandType.CREATE, command.symbol, side, quantity)
            added = control_rules.exposure_growth(facts.controls, order, facts.now)
            self._exposure[key] = _sum(self._exposure.get(key, Decimal(0)), added)

    def _added_elsewhere(self, account_id: UUID, symbol: str) -> Decimal | None:
        total: Decimal | None = Decimal(0)
        for (of_account, of_symbol), added in self._exposure.items():
            if of_account == account_id and of_symbol != symbol:
                total = _sum(total, added)
        return total


def _sum(known: Decimal | None, added: Decimal | None) -> Decimal | None:
    return None if known is None or added is None else known + added


def _more(counts: control_rules.OrderCounts, added: int) -> control_rules.OrderCounts:
    def count(before: int | None) -> int | None:
        return None if before is None else before + added

    return control_rules.OrderCounts(count(counts.last_minute), count(counts.last_day), count(counts.open))
