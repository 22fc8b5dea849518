"""Whether a command may pass an account's controls, and why not: the one home of that rule.

    decision = evaluate(facts_from_row(row), command, now)
    decision.decision, decision.checks, decision.refusals

Pure: facts and time are arguments, nothing is read here. Controls uses it to preview, intents to decide a submit.
"""

from control_rules.evaluation import evaluate
from control_rules.facts import (
    Check,
    Command,
    CommandType,
    Decision,
    Facts,
    Limits,
    ManualControl,
    OrderCounts,
    OrderSide,
    Outcome,
    Refusal,
    RefusalCode,
    Switch,
    TimeControl,
    TradingState,
    Verdict,
)
from control_rules.recording import recorded
from control_rules.rows import facts_from_row
from control_rules.symbols import SYMBOL_PATTERN, normalized_symbol
from control_rules.windows import Window

__all__ = [
    "SYMBOL_PATTERN",
    "Check",
    "Command",
    "CommandType",
    "Decision",
    "Facts",
    "Limits",
    "ManualControl",
    "OrderCounts",
    "OrderSide",
    "Outcome",
    "Refusal",
    "RefusalCode",
    "Switch",
    "TimeControl",
    "TradingState",
    "Verdict",
    "Window",
    "evaluate",
    "facts_from_row",
    "normalized_symbol",
    "recorded",
]
