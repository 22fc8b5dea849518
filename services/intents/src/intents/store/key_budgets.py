"""What API keys with a budget have spent of it in their day, and SQL for whoever changes that.

A key's row is the last that a transaction locks, after all heads. Only the statement that writes decides whether the
budget suffices: what was read before may be spent by then, on another account.
"""

from dataclasses import replace
from uuid import UUID

import control_rules
from intents import model
from intents.store.statement import Statement, Transaction
from intents.store.statuses import TERMINAL_SQL

_KEY_BUDGET = Statement(
    "intents_key_budget",
    ("uuid", "uuid", "uuid"),
    "SELECT day_ends_at, spent, charged FROM intents_api.key_budget($1, $2, $3)",
)
COLUMNS = """
    budget_key uuid, budget_notional numeric, budget_most numeric, budget_quantity numeric,
    budget_day_ends_at timestamptz, budget_read_day timestamptz
"""
"""What a command takes of a budget, among the columns of what is appended."""


def with_key_budget(tx: Transaction, facts: model.SubmitFacts, submission: model.Submission) -> model.SubmitFacts:
    """The facts with what the key has spent; as they are if it has no budget."""
    bounds, controls = submission.key_bounds, facts.controls
    if bounds is None or bounds.max_notional_per_day is None or controls is None:
        return facts
    intent_id = submission.command.ref_intent_id
    rows = tx.read(_KEY_BUDGET, (submission.actor.id, str(submission.account_id), _text(intent_id)))
    read = control_rules.KeySpending(*rows[0]) if rows else None
    known = replace(controls, key_bounds=control_rules.with_spending(bounds, read, facts.now, controls.time_zone))
    return replace(facts, controls=known, key_day_ends_at=read.day_ends_at if read else None)


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def take_budget(source: str) -> str:
    """SQL that takes of each key's budget what the rows of the CTE `source` take of it, and returns those keys.

    A key whose budget does not suffice, or whose day is another than was read, is not returned. `source` has COLUMNS.
    """
    return f"""
    INSERT INTO intents.key_budget AS budget (key_id, organization_id, day_ends_at, spent)
    SELECT budget_key, organization_id, budget_day_ends_at, budget_notional
    FROM {source} WHERE budget_key IS NOT NULL AND budget_notional <= budget_most
    ON CONFLICT (key_id) DO UPDATE SET day_ends_at = excluded.day_ends_at,
        spent = excluded.spent + CASE WHEN budget.day_ends_at = excluded.day_ends_at THEN budget.spent ELSE 0 END
        WHERE CASE WHEN budget.day_ends_at = excluded.day_ends_at
              THEN budget.spent + excluded.spent <= (SELECT max(budget_most) FROM {source})
              ELSE budget.day_ends_at = (SELECT max(budget_read_day) FROM {source}) END
    RETURNING key_id
    """  # noqa: S608 - only our own words


def is_within_budget(row: str, taken: str) -> str:
    """SQL for whether a row takes nothing of a budget, or what it takes is among the CTE `taken`."""
    return f"({row}.budget_key IS NULL OR {row}.budget_key IN (SELECT key_id FROM {taken}))"  # noqa: S608 - only our own words


def used(intent: str) -> str:
    """SQL for what the intent uses of its key's budget: all that it took while it is open, then the part filled.

    Of an order by its notional (quantity 0) nobody knows which part is filled: it uses all, or if nothing is, nothing.
    """
    return f"""
        CASE WHEN {intent}.budget_key_id IS NULL OR {intent}.status IN ({TERMINAL_SQL}) AND {intent}.filled_quantity = 0
                  THEN 0
             WHEN {intent}.budget_quantity = 0 THEN {intent}.budget_notional
             WHEN {intent}.status IN ({TERMINAL_SQL}) THEN trunc({intent}.budget_notional
                  * least({intent}.filled_quantity, {intent}.budget_quantity) / {intent}.budget_quantity, 9)
             ELSE {intent}.budget_notional END"""


def settle_budgets(changed: str, after: str) -> tuple[str, str]:
    """Two CTEs' SQL that add what `changed` gives (budget_key_id, budget_day_ends_at, used) to the keys' budgets.

    The first, `budgets`, locks the keys in order, once the CTE `after` has locked the heads. A day that is over has
    no row any more.
    """
    lock = f"""
    SELECT key_id FROM intents.key_budget
    WHERE key_id IN (SELECT budget_key_id FROM {changed} WHERE used <> 0) AND (SELECT count(*) FROM {after}) >= 0
    ORDER BY key_id FOR UPDATE
    """  # noqa: S608 - only our own words
    add = f"""
    UPDATE intents.key_budget budget SET spent = budget.spent + change.used
    FROM (SELECT budget_key_id, budget_day_ends_at, sum(used) AS used
          FROM {changed} WHERE used <> 0 GROUP BY budget_key_id, budget_day_ends_at) change
    WHERE budget.key_id = change.budget_key_id AND budget.day_ends_at = change.budget_day_ends_at
      AND budget.key_id IN (SELECT key_id FROM budgets)
    """  # noqa: S608 - only our own words
    return lock, add


def charge_values(charge: model.KeyCharge | None) -> dict[str, str | None]:
    """The values of COLUMNS."""
    if charge is None:
        return {}
    return {
        "budget_key": charge.key_id,
        "budget_notional": str(charge.notional),
        "budget_most": str(charge.most),
        "budget_quantity": str(charge.quantity),
        "budget_day_ends_at": charge.day_ends_at.isoformat(),
        "budget_read_day": charge.read_day_ends_at.isoformat() if charge.read_day_ends_at else None,
    }
