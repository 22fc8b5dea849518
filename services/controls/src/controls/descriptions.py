"""What controls' fields mean, with examples, for the API document.

See `chassis.openapi_descriptions` and `chassis.openapi_examples`.
"""

from controls.samples import CALLS

_STALE = (
    "Milliseconds after which an order that is still open is canceled, and one that was not sent yet ends as `EXPIRED`"
)
FIELDS = {
    "query.symbol": "Only what is about this symbol.",
    # Manual and time controls
    "manually_disabled": "Whether CREATE and REPLACE of the symbol are refused.",
    "manual_reason": "Why, up to 500 characters; cleared when it is left out, absent when there is none.",
    "trading_start": "When trading begins, `HH:MM:SS` in the account's zone; included. After `trading_end` it "
    "crosses midnight.",
    "trading_end": "When trading ends, `HH:MM:SS` in the account's zone; not included.",
    "stale_order_millis": f"{_STALE}; 1 000 to 86 400 000.",
    "clear": "The fields to remove. What is neither set nor named here stays as it is.",
    "SymbolTimeControlRequest.trading_start": "When trading begins, `HH:MM:SS` in the account's zone; null or "
    "absent: unchanged.",
    "SymbolTimeControlRequest.trading_end": "When trading ends, `HH:MM:SS` in the account's zone; null or absent: "
    "unchanged.",
    "SymbolTimeControlRequest.stale_order_millis": f"{_STALE}; 1 000 to 86 400 000, null or absent: unchanged.",
    # Trading state
    "trading_state": "`ACTIVE` lets orders pass, `REDUCING` only those that reduce a position, `HALTED` none. "
    "CANCEL passes.",
    "SwitchRequest.reason": "Why, up to 500 characters; cleared when it is left out.",
    "AccountSwitch.reason": "Why; null if no reason was given.",
    "OrganizationSwitch.reason": "Why; null if no reason was given.",
    "cancel_open": "Cancel all open intents as well; with `HALTED` only.",
    # Limits
    "max_quantity": "Most quantity of one order; null for any.",
    "max_notional": "Most that quantity times price of one order may come to; null for any amount.",
    "price_collar_bps": "How far a price that the order names may be from the reference price, in basis points; "
    "null for any.",
    "max_orders_per_minute": "Most CREATE and REPLACE commands in the last 60 seconds; null for any number.",
    "max_orders_per_day": "Most CREATE and REPLACE commands in the last 24 hours; null for any number.",
    "max_open_orders": "Most orders that are open at once; null for any number.",
    "max_position_quantity": "Largest position, long or short, that fills of all open orders may lead to; null for "
    "any.",
    "max_position_notional": "The same at the reference price; null for any amount.",
    "allow_short": "`false`: a SELL may not make the position short. Null is like `true`.",
    "max_gross_exposure": "Most that all symbols together may come to at their reference prices; null for any amount.",
    "max_daily_loss": "Most that the equity may fall in a day of the account's zone; above it only what reduces "
    "passes. "
    "Null for any amount.",
    "allowed_symbols": "The only symbols that may be traded, up to 500; null for all.",
    "denied_symbols": "Symbols that may not be traded, up to 500; null for none.",
    "SymbolControls.manual": "The manual control of the symbol; null if there is none.",
    "SymbolControls.time": "The time control of the symbol; null if there is none.",
    "SymbolControls.limits": "The limits of the symbol; null if there are none.",
    # History
    "ControlChange.control": "Which control changed, such as `symbol_manual`.",
    "ControlChange.account_id": "Id of the account; null if it is the organization's control.",
    "ControlChange.symbol": "The symbol that the control is about; null if it is about all.",
    "ControlChange.from": "What the control said before; null if there was none.",
    "ControlChange.to": "What it says now; null if it was removed.",
    "ControlChange.version": "Version of the control after the change.",
    "ControlChange.created_at": "When it was changed.",
    "ChangeActor.type": "What kind of caller it was; `system` is the platform.",
    "ChangeActor.id": "Id of the caller: a user's subject, a client id, the id of a key.",
    # Previews
    "PreviewRequest.command": "The command to judge, as in a submit.",
    "PreviewRequest.at": "The moment to judge for; now if it is null or left out.",
    "PreviewRequest.facts": "Facts to judge by instead of those of the moment.",
    "PreviewAnswer.at": "The moment that was judged for.",
    "PreviewAnswer.decision": "Whether the command would pass.",
    "PreviewAnswer.checks": "Every control that there is, and what it said.",
    "PreviewAnswer.reasons": "Why it would be refused; empty if it would pass.",
    "PreviewAnswer.facts": "The facts that decided.",
    "PreviewCommand.type": "What to do: make an order, replace it or cancel it.",
    "PreviewCommand.payload": "The order.",
    "PreviewCheck.control": "Which control.",
    "PreviewCheck.version": "Version of the control.",
    "PreviewCheck.outcome": "What it said. `NOT_EVALUATED`: a fact that it needs is not known, which refuses.",
    "PreviewReason.code": "Why, for programs.",
    "PreviewReason.control": "Which control refused it.",
    "PreviewReason.version": "Version of the control.",
    "PreviewReason.message": "Why, for people.",
    "position_quantity": "Quantity held of the symbol, negative when short; null if it is not known.",
    "open_quantity": "Quantity of the other open orders of the symbol on the command's side.",
    "opposite_open_quantity": "Quantity of the open orders of the symbol on the other side.",
    "PreviewFacts.filled_quantity": "How much of the order that is replaced has been filled.",
    "reference_price": "Price to judge by; null if none is known that is new enough.",
    "reference_price_source": "Where the price comes from: `quote`, `broker` or `fill`; null without one.",
    "reference_price_at": "The moment of the price; null without one.",
    "other_exposure": "What the other symbols come to at their reference prices; null if one of these is not known.",
    "equity": "What the account is worth, in its currency; null if it is not known.",
    "day_start_equity": "The first equity that the broker reported this day; null if it is not known.",
    "account_orders_last_minute": "CREATE and REPLACE commands of the account accepted in the last 60 seconds.",
    "account_orders_last_day": "CREATE and REPLACE commands of the account accepted in the last 24 hours.",
    "account_open_orders": "Open orders of the account.",
    "symbol_orders_last_minute": "CREATE and REPLACE commands of the symbol accepted in the last 60 seconds.",
    "symbol_orders_last_day": "CREATE and REPLACE commands of the symbol accepted in the last 24 hours.",
    "symbol_open_orders": "Open orders of the symbol.",
}
EXAMPLES = {
    "manually_disabled": True,
    "manual_reason": "Earnings tonight",
    "trading_start": "09:30:00",
    "trading_end": "16:00:00",
    "stale_order_millis": 60000,
    "SymbolTimeControlRequest": {"trading_start": "09:30:00", "trading_end": "16:00:00"},
    "SymbolManualControlRequest": {"manually_disabled": True, "manual_reason": "Earnings tonight"},
    "trading_state": "ACTIVE",
    "SwitchRequest": {"trading_state": "ACTIVE", "reason": "Maintenance"},
    "SymbolLimitsRequest": {"max_quantity": "100", "max_open_orders": 10},
    "AccountLimitsRequest": {"max_notional": "100000", "max_daily_loss": "5000", "denied_symbols": ["GME"]},
    "max_quantity": "100",
    "max_notional": "100000",
    "price_collar_bps": None,
    "max_orders_per_minute": None,
    "max_orders_per_day": None,
    "max_open_orders": 10,
    "max_position_quantity": None,
    "max_position_notional": None,
    "allow_short": None,
    "max_gross_exposure": None,
    "max_daily_loss": "5000",
    "allowed_symbols": None,
    "denied_symbols": ["GME"],
    "ControlChange.control": "symbol_manual",
    "ControlChange.from": None,
    "ControlChange.to": {"manually_disabled": True, "manual_reason": "Earnings tonight"},
    "ChangeActor": {"type": "user", "id": "ada@example.com"},
    "PreviewRequest": {
        "command": {
            "type": "CREATE",
            "payload": {"symbol": "AAPL", "order_side": "BUY", "spec": {"Market": {"quantity": "1"}}},
        }
    },
    "PreviewAnswer.decision": "REFUSED",
    "PreviewCheck": {"control": "symbol_manual", "version": 1, "outcome": "REFUSED"},
    "PreviewReason": {
        "code": "SYMBOL_DISABLED",
        "control": "symbol_manual",
        "version": 1,
        "message": "AAPL is disabled: Earnings tonight",
    },
    "reference_price": "187.20",
    "reference_price_source": "quote",
    "position_quantity": "0",
    "open_quantity": "0",
    "opposite_open_quantity": "0",
    "other_exposure": "0",
    "equity": "100000.00",
    "day_start_equity": "100000.00",
}
EXTENSIONS = {"descriptions": FIELDS, "examples": EXAMPLES, "samples": CALLS}
