"""What is known when a command is judged, and what the judgement says."""

from dataclasses import dataclass, replace
from datetime import time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from control_rules.windows import Window


class TradingState(StrEnum):
    ACTIVE = "ACTIVE"
    REDUCING = "REDUCING"
    HALTED = "HALTED"


class CommandType(StrEnum):
    CREATE = "CREATE"
    REPLACE = "REPLACE"
    CANCEL = "CANCEL"


class OrderSide(StrEnum):
    BUY = "BUY"
    SELL = "SELL"


class Outcome(StrEnum):
    """NOT_APPLICABLE: the control has nothing to say about this command. NOT_EVALUATED: a fact it needs is missing."""

    PASSED = "PASSED"
    REFUSED = "REFUSED"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    NOT_EVALUATED = "NOT_EVALUATED"


class Verdict(StrEnum):
    ALLOWED = "ALLOWED"
    REFUSED = "REFUSED"


class RefusalCode(StrEnum):
    ACCOUNT_DISABLED = "ACCOUNT_DISABLED"
    TRADING_HALTED = "TRADING_HALTED"
    TRADING_REDUCING = "TRADING_REDUCING"
    SYMBOL_DISABLED = "SYMBOL_DISABLED"
    OUTSIDE_TRADING_WINDOW = "OUTSIDE_TRADING_WINDOW"
    QUANTITY_ABOVE_LIMIT = "QUANTITY_ABOVE_LIMIT"
    NOTIONAL_ABOVE_LIMIT = "NOTIONAL_ABOVE_LIMIT"
    PRICE_OUTSIDE_COLLAR = "PRICE_OUTSIDE_COLLAR"
    ORDER_RATE_ABOVE_LIMIT = "ORDER_RATE_ABOVE_LIMIT"


@dataclass(frozen=True)
class Switch:
    """The trading state of an account or of a whole organization."""

    trading_state: TradingState
    version: int
    reason: str | None = None


@dataclass(frozen=True)
class ManualControl:
    manually_disabled: bool
    version: int
    manual_reason: str | None = None


@dataclass(frozen=True)
class TimeControl:
    version: int
    trading_start: time | None = None
    trading_end: time | None = None
    stale_order_millis: int | None = None

    @property
    def window(self) -> Window:
        return Window(self.trading_start, self.trading_end)


@dataclass(frozen=True)
class Limits:
    """Each limit alone may be set; None sets no limit."""

    version: int
    max_quantity: Decimal | None = None
    max_notional: Decimal | None = None
    price_collar_bps: int | None = None
    max_orders_per_minute: int | None = None
    max_orders_per_day: int | None = None


@dataclass(frozen=True)
class OrderCounts:
    """CREATE and REPLACE commands accepted in the 60 seconds and the 24 hours before now; None is not known."""

    last_minute: int | None = None
    last_day: int | None = None

    def without(self, age: timedelta) -> "OrderCounts":
        """The counts without one order of that age."""
        last_minute = _without(self.last_minute, age < timedelta(minutes=1))
        return replace(self, last_minute=last_minute, last_day=_without(self.last_day, age < timedelta(days=1)))


def _without(count: int | None, is_counted: bool) -> int | None:
    return count if count is None or not is_counted else max(0, count - 1)


@dataclass(frozen=True)
class Facts:
    """Everything about the account and the symbol that a decision needs. A control that is None is not set.

    `position_quantity` is signed: long is positive, short negative. `open_quantity` is what is still open in the
    account's other orders of the symbol on the command's side. Of both, and of the price and the counts, None means
    not known: a control that needs it is then NOT_EVALUATED, and what was not evaluated does not pass.
    """

    time_zone: str
    account_disabled: bool
    account_version: int
    organization_switch: Switch | None = None
    account_switch: Switch | None = None
    symbol_manual: ManualControl | None = None
    symbol_time: TimeControl | None = None
    account_limits: Limits | None = None
    symbol_limits: Limits | None = None
    account_orders: OrderCounts = OrderCounts()
    symbol_orders: OrderCounts = OrderCounts()
    position_quantity: Decimal | None = None
    open_quantity: Decimal | None = None
    reference_price: Decimal | None = None


@dataclass(frozen=True)
class Command:
    """What is to be done. Of a REPLACE, `quantity` is the new total and `filled_quantity` what is filled of it.

    A CANCEL needs nothing but its type.
    """

    type: CommandType
    symbol: str = ""
    side: OrderSide | None = None
    quantity: Decimal = Decimal(0)
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    filled_quantity: Decimal = Decimal(0)


class Check(NamedTuple):
    control: str
    version: int
    outcome: Outcome


class Refusal(NamedTuple):
    code: RefusalCode
    control: str
    version: int
    message: str


@dataclass(frozen=True)
class Decision:
    """ALLOWED or REFUSED, every control that was checked, and every reason to refuse."""

    decision: Verdict
    checks: tuple[Check, ...]
    refusals: tuple[Refusal, ...]
