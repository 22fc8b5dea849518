"""The decision table, made by calling the rule: `python -m control_rules.document > docs/decision-table.md`.

Every line below is a case with its words; what is decided about it is never written by hand.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from control_rules.evaluation import evaluate
from control_rules.facts import (
    Command,
    CommandType,
    Facts,
    KeyBounds,
    Limits,
    ManualControl,
    OrderCounts,
    OrderSide,
    ReferencePrice,
    Switch,
    TimeControl,
    TradingState,
)

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
OPEN = Facts(
    time_zone="UTC",
    account_disabled=False,
    account_version=1,
    account_orders=OrderCounts(0, 0, 0),
    symbol_orders=OrderCounts(0, 0, 0),
    position_quantity=Decimal(0),
    open_quantity=Decimal(0),
    reference_price=ReferencePrice(Decimal(100), "fill", NOON),
    opposite_open_quantity=Decimal(0),
    other_exposure=Decimal(0),
    equity=Decimal(10_000),
    day_start_equity=Decimal(10_000),
)
MARKET_BUY = Command(CommandType.CREATE, "AAPL", OrderSide.BUY, Decimal(10))
LIMIT_BUY = replace(MARKET_BUY, limit_price=Decimal(101))
SELL = replace(MARKET_BUY, side=OrderSide.SELL)
TRAILING_BUY = replace(MARKET_BUY, trail_percent=Decimal(2))
TRAILING_SELL = replace(SELL, trail_amount=Decimal(2))
NOTIONAL_BUY = replace(MARKET_BUY, quantity=Decimal(0), notional=Decimal(900))
NOTIONAL_SELL = replace(NOTIONAL_BUY, side=OrderSide.SELL)
CANCEL = Command(CommandType.CANCEL)


@dataclass(frozen=True)
class Case:
    situation: str
    facts: Facts
    described: str = "CREATE BUY 10 at market"
    command: Command = MARKET_BUY
    now: datetime = NOON

    def line(self) -> str:
        decision = evaluate(self.facts, self.command, self.now)
        last = decision.checks[-1]
        codes = ", ".join(f"`{refusal.code}`" for refusal in decision.refusals) or "-"
        return (
            f"| {self.situation} | {self.described} | `{last.control}` {last.outcome} | {decision.decision} | {codes} |"
        )


def _switches() -> Iterator[Case]:
    yield Case("nothing is set", OPEN)
    yield Case("account disabled", replace(OPEN, account_disabled=True))
    for of in ("organization", "account"):
        for state in TradingState:
            switch = {f"{of}_switch": Switch(state, 1)}
            yield Case(f"{of} {state}, flat", replace(OPEN, **switch))  # type: ignore[arg-type]
    reducing = replace(OPEN, account_switch=Switch(TradingState.REDUCING, 1))
    long, short = replace(reducing, position_quantity=Decimal(10)), replace(reducing, position_quantity=Decimal(-10))
    more = replace(SELL, quantity=Decimal(11))
    replaced = replace(SELL, type=CommandType.REPLACE, quantity=Decimal(14), filled_quantity=Decimal(4))
    yield Case("account REDUCING, long 10", long, "CREATE SELL 10", SELL)
    yield Case("account REDUCING, long 10", long, "CREATE SELL 11", more)
    yield Case("account REDUCING, long 10", long, "CREATE SELL for 900", NOTIONAL_SELL)
    yield Case("account REDUCING, long 10", long, "CREATE BUY 10")
    yield Case("account REDUCING, long 10, 4 filled of the order", long, "REPLACE SELL to 14", replaced)
    yield Case(
        "account REDUCING, long 10, SELL 1 open", replace(long, open_quantity=Decimal(1)), "CREATE SELL 10", SELL
    )
    yield Case("account REDUCING, short 10", short, "CREATE BUY 10")
    yield Case("account REDUCING, short 10", short, "CREATE SELL 10", SELL)
    yield Case(
        "account REDUCING, position not known", replace(reducing, position_quantity=None), "CREATE SELL 10", SELL
    )
    yield Case(
        "account REDUCING, long 10, open orders not known", replace(long, open_quantity=None), "CREATE SELL 10", SELL
    )
    halted = Switch(TradingState.HALTED, 1)
    yield Case("account HALTED", replace(OPEN, account_switch=halted), "CANCEL", CANCEL)
    yield Case("account disabled", replace(OPEN, account_disabled=True), "CANCEL", CANCEL)


def _symbols() -> Iterator[Case]:
    yield Case("symbol manually disabled", replace(OPEN, symbol_manual=ManualControl(True, 1)))
    yield Case("manual control, not disabled", replace(OPEN, symbol_manual=ManualControl(False, 1)))
    yield Case("symbol manually disabled", replace(OPEN, symbol_manual=ManualControl(True, 1)), "CANCEL", CANCEL)
    nine, five, ten = time(9), time(17), time(22)
    for start, end in ((nine, five), (ten, nine), (five, nine), (nine, None), (None, nine), (None, five), (None, None)):
        facts = replace(OPEN, symbol_time=TimeControl(1, start, end))
        for moment in (NOON.replace(hour=9), NOON, NOON.replace(hour=17), NOON.replace(hour=23)):
            yield Case(f"trading_start {start}, trading_end {end}", facts, f"CREATE at {moment:%H:%M:%S}", now=moment)
    summer = replace(OPEN, time_zone="Europe/Berlin", symbol_time=TimeControl(1, nine, five))
    for moment in (NOON.replace(month=7, hour=7), NOON.replace(month=1, hour=7)):
        yield Case(
            "09:00:00 to 17:00:00 in Europe/Berlin", summer, f"CREATE at {moment:%Y-%m-%dT%H:%M:%SZ}", now=moment
        )
    nowhere = replace(summer, time_zone="Nowhere/Land")
    yield Case("09:00:00 to 17:00:00 in an unknown time zone", nowhere, "CREATE at 12:00:00")


def _limits() -> Iterator[Case]:
    blind = replace(OPEN, reference_price=None, account_orders=OrderCounts(), symbol_orders=OrderCounts())
    quantity = Limits(1, max_quantity=Decimal(10))
    yield Case("max_quantity 10", replace(OPEN, symbol_limits=quantity))
    yield Case(
        "max_quantity 10",
        replace(OPEN, symbol_limits=quantity),
        "CREATE BUY 10.1",
        replace(MARKET_BUY, quantity=Decimal("10.1")),
    )
    for most in (10, Decimal("9.999")):
        facts = replace(OPEN, symbol_limits=Limits(1, max_quantity=Decimal(most)))
        yield Case(f"max_quantity {most}, reference price 100", facts, "CREATE BUY for 900", NOTIONAL_BUY)
    yield Case("reference price not known", blind, "CREATE BUY for 900", NOTIONAL_BUY)
    notional = {"symbol_limits": Limits(1, max_notional=Decimal(1000))}
    old = replace(OPEN, reference_price=ReferencePrice(Decimal(100), "fill", NOON - timedelta(seconds=61)))
    for market, words in (
        (OPEN, "reference price 100"),
        (blind, "reference price not known"),
        (old, "reference price 61 s old"),
    ):
        facts = replace(market, **notional)  # type: ignore[arg-type]
        yield Case(f"max_notional 1000, {words}", facts)
        yield Case(f"max_notional 1000, {words}", facts, "CREATE BUY 10 at limit 101", LIMIT_BUY)
        low = replace(SELL, quantity=Decimal(11), limit_price=Decimal(1))
        yield Case(f"max_notional 1000, {words}", facts, "CREATE SELL 11 at limit 1", low)
        yield Case(f"max_notional 1000, {words}", facts, "CREATE BUY 10, trailing by 2 percent", TRAILING_BUY)
        yield Case(f"max_notional 1000, {words}", facts, "CREATE SELL 10, trailing by 2", TRAILING_SELL)
        yield Case(f"max_notional 1000, {words}", facts, "CREATE BUY for 900", NOTIONAL_BUY)
    collar = {"symbol_limits": Limits(1, price_collar_bps=100)}
    for market, words in ((OPEN, "reference price 100"), (blind, "reference price not known")):
        facts = replace(market, **collar)  # type: ignore[arg-type]
        yield Case(f"price_collar_bps 100, {words}", facts)
        for price in ("99", "101", "101.01"):
            command = replace(MARKET_BUY, limit_price=Decimal(price))
            yield Case(f"price_collar_bps 100, {words}", facts, f"CREATE BUY 10 at limit {price}", command)
        for trail in ("1", "1.01"):
            command = replace(SELL, trail_percent=Decimal(trail))
            yield Case(f"price_collar_bps 100, {words}", facts, f"CREATE SELL 10, trailing by {trail} percent", command)
    rates = {
        "max_orders_per_minute": Limits(1, max_orders_per_minute=5),
        "max_orders_per_day": Limits(1, max_orders_per_day=5),
    }
    for name, limits in rates.items():
        for before in (4, 5, None):
            counts = OrderCounts(before, before, 0)
            words = "not known" if before is None else str(before)
            yield Case(f"{name} 5, orders before: {words}", replace(OPEN, account_limits=limits, account_orders=counts))


def _positions() -> Iterator[Case]:
    long, short = replace(OPEN, position_quantity=Decimal(95)), replace(OPEN, position_quantity=Decimal(-95))
    blind = replace(long, reference_price=None)
    quantity = {"symbol_limits": Limits(1, max_position_quantity=Decimal(100))}
    words = "max_position_quantity 100"
    yield Case(f"{words}, long 90", replace(OPEN, position_quantity=Decimal(90), **quantity))  # type: ignore[arg-type]
    yield Case(f"{words}, long 95", replace(long, **quantity))  # type: ignore[arg-type]
    yield Case(f"{words}, long 95", replace(long, **quantity), "CREATE SELL 10", SELL)  # type: ignore[arg-type]
    yield Case(f"{words}, short 95", replace(short, **quantity), "CREATE SELL 10", SELL)  # type: ignore[arg-type]
    others = replace(OPEN, open_quantity=Decimal(91), **quantity)  # type: ignore[arg-type]
    yield Case(f"{words}, flat, other BUY orders of 91 open", others)
    notional = {"symbol_limits": Limits(1, max_position_notional=Decimal(10_000))}
    words = "max_position_notional 10000, reference price"
    yield Case(f"{words} 100, long 95", replace(long, **notional))  # type: ignore[arg-type]
    yield Case(f"{words} not known, long 95", replace(blind, **notional))  # type: ignore[arg-type]
    yield Case(f"{words} not known, long 95", replace(blind, **notional), "CREATE SELL 10", SELL)  # type: ignore[arg-type]
    for allowed in (True, False):
        facts = replace(OPEN, position_quantity=Decimal(9), symbol_limits=Limits(1, allow_short=allowed))
        yield Case(f"allow_short {allowed}, long 9", facts, "CREATE SELL 10", SELL)
    for count in (4, 5):
        facts = replace(OPEN, account_limits=Limits(1, max_open_orders=5), account_orders=OrderCounts(0, 0, count))
        yield Case(f"max_open_orders 5, open: {count}", facts)


def _accounts() -> Iterator[Case]:
    exposure = {"account_limits": Limits(1, max_gross_exposure=Decimal(10_000))}
    for other in (9_000, 9_001, None):
        facts = replace(OPEN, other_exposure=None if other is None else Decimal(other), **exposure)  # type: ignore[arg-type]
        words = "without a usable price" if other is None else f"worth {other}"
        yield Case(f"max_gross_exposure 10000, other symbols {words}", facts)
    above = replace(facts, other_exposure=Decimal(20_000), position_quantity=Decimal(10))
    yield Case("max_gross_exposure 10000, others 20000, long 10", above, "CREATE SELL 10", SELL)
    loss = replace(OPEN, position_quantity=Decimal(10), account_limits=Limits(1, max_daily_loss=Decimal(500)))
    for equity in (9_500, 9_499, None):
        facts = replace(loss, equity=None if equity is None else Decimal(equity))
        yield Case(f"max_daily_loss 500, equity 10000 at the day's start, now {equity or 'not known'}", facts)
    down = replace(loss, equity=Decimal(9_499))
    yield Case("max_daily_loss 500, lost 501, long 10", down, "CREATE SELL 10", SELL)
    for name in ("allowed_symbols", "denied_symbols"):
        for symbols in (("AAPL", "MSFT"), ("MSFT",)):
            facts = replace(OPEN, account_limits=Limits(1, **{name: symbols}))  # type: ignore[arg-type]
            yield Case(f"{name} {', '.join(symbols)}", facts)


def _keys() -> Iterator[Case]:
    for symbols in (("AAPL", "MSFT"), ("MSFT",)):
        facts = replace(OPEN, key_bounds=KeyBounds(symbols))
        yield Case(f"symbols {', '.join(symbols)}", facts)
    yield Case("symbols MSFT", facts, "CANCEL", CANCEL)
    for spent in (0, 1, None):
        bounds = KeyBounds(None, Decimal(1000), None if spent is None else Decimal(spent))
        words = f"max_notional_per_day 1000, spent {'not known' if spent is None else spent}"
        yield Case(f"{words}, reference price 100", replace(OPEN, key_bounds=bounds))
    spent_all = replace(OPEN, key_bounds=KeyBounds(None, Decimal(1000), Decimal(1000)))
    yield Case(
        "max_notional_per_day 1000, spent 1000, long 10",
        replace(spent_all, position_quantity=Decimal(10)),
        "CREATE SELL 10",
        SELL,
    )
    yield Case(
        "max_notional_per_day 1000, spent 0, reference price not known",
        replace(OPEN, reference_price=None, key_bounds=KeyBounds(None, Decimal(1000), Decimal(0))),
    )
    replaced = replace(LIMIT_BUY, type=CommandType.REPLACE, quantity=Decimal(15), limit_price=Decimal(100))
    for charged in (1000, 400):
        bounds = KeyBounds(None, Decimal(1500), Decimal(1000), Decimal(charged))
        words = f"max_notional_per_day 1500, spent 1000, {charged} of it by the order"
        yield Case(words, replace(OPEN, key_bounds=bounds), "REPLACE BUY to 15 at limit 100", replaced)


PARTS = (
    ("Account and trading state", _switches),
    ("Symbols and trading windows", _symbols),
    ("Limits of an order", _limits),
    ("Limits of a position", _positions),
    ("Limits of an account", _accounts),
    ("Bounds of an API key", _keys),
)
HEAD = """# Decision table of the controls

Made by `python -m control_rules.document` from the rule itself; a test fails when this file and the rule differ.

- CANCEL always passes. CREATE and REPLACE are judged alike, on paper as on live accounts.
- Every control that is set gives a check, and every refusal is reported, not only the first.
- PASSED and REFUSED speak for themselves. NOT_APPLICABLE: the control has nothing to say about this command.
- NOT_EVALUATED: the control is set, but a fact that it needs is not known. What was not evaluated does not pass: the
  command is refused with the control's usual code, or `REFERENCE_PRICE_UNKNOWN` where the price is missing or too old,
  and the message names the missing fact. REDUCING without a known position therefore refuses everything but CANCEL.
"""


def document() -> str:
    lines = [HEAD]
    for title, cases in PARTS:
        lines += [f"\n## {title}\n", "| when | command | check | decision | codes |", "|---|---|---|---|---|"]
        lines += [case.line() for case in cases()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
