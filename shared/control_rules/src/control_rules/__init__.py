"""Whether a command may pass an account's controls, and why not: the one home of that rule.

    decision = evaluate(facts_from_row(row), command, now)
    decision.decision, decision.checks, decision.refusals

Pure: facts and time are arguments, nothing is read here. Controls uses it to preview, intents to decide a submit.
"""

from control_rules.bounds import KeySpending, key_charge, with_spending
from control_rules.days import end_of_day, has_begun_after, wall_day
from control_rules.evaluation import evaluate, missing_prices
from control_rules.facts import (
    PRICE_MAX_AGE,
    Check,
    Command,
    CommandType,
    Decision,
    Facts,
    KeyBounds,
    Limits,
    ManualControl,
    MissingPrices,
    OrderCounts,
    OrderSide,
    Outcome,
    ReferencePrice,
    Refusal,
    RefusalCode,
    Switch,
    TimeControl,
    TradingState,
    Verdict,
)
from control_rules.limits import exposure_growth
from control_rules.positions import reduces
from control_rules.recording import recorded
from control_rules.rows import facts_from_row, order_facts_from_row
from control_rules.symbols import SYMBOL_PATTERN, normalized_symbol
from control_rules.windows import Window

__all__ = [
    "PRICE_MAX_AGE",
    "SYMBOL_PATTERN",
    "Check",
    "Command",
    "CommandType",
    "Decision",
    "Facts",
    "KeyBounds",
    "KeySpending",
    "Limits",
    "ManualControl",
    "MissingPrices",
    "OrderCounts",
    "OrderSide",
    "Outcome",
    "ReferencePrice",
    "Refusal",
    "RefusalCode",
    "Switch",
    "TimeControl",
    "TradingState",
    "Verdict",
    "Window",
    "end_of_day",
    "evaluate",
    "exposure_growth",
    "facts_from_row",
    "has_begun_after",
    "key_charge",
    "missing_prices",
    "normalized_symbol",
    "order_facts_from_row",
    "recorded",
    "reduces",
    "wall_day",
    "with_spending",
]
