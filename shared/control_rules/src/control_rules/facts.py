"""What is known when a command is judged, and what the judgement says."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from decimal import ROUND_UP, Context, Decimal
from enum import StrEnum
from typing import NamedTuple, Self

from control_rules.windows import Window

PRICE_MAX_AGE = timedelta(seconds=60)
"""How old a reference price may be where nothing else is configured."""
EXACTLY = Context(prec=100)
"""The usual 28 digits would round the product of two long decimals, and the edge of a limit with it."""
_PERCENT = Decimal("0.01")
FALLEN = Decimal("0.9")
"""The part of the reference price by which the quantity of an order by its notional is counted."""
FINEST_QUANTITY = Decimal("1e-9")


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
    REFERENCE_PRICE_UNKNOWN = "REFERENCE_PRICE_UNKNOWN"
    POSITION_ABOVE_LIMIT = "POSITION_ABOVE_LIMIT"
    POSITION_NOTIONAL_ABOVE_LIMIT = "POSITION_NOTIONAL_ABOVE_LIMIT"
    GROSS_EXPOSURE_ABOVE_LIMIT = "GROSS_EXPOSURE_ABOVE_LIMIT"
    OPEN_ORDERS_ABOVE_LIMIT = "OPEN_ORDERS_ABOVE_LIMIT"
    DAILY_LOSS_ABOVE_LIMIT = "DAILY_LOSS_ABOVE_LIMIT"
    SHORT_NOT_ALLOWED = "SHORT_NOT_ALLOWED"
    SYMBOL_NOT_ALLOWED = "SYMBOL_NOT_ALLOWED"
    SYMBOL_DENIED = "SYMBOL_DENIED"
    KEY_SYMBOL_NOT_ALLOWED = "KEY_SYMBOL_NOT_ALLOWED"
    KEY_NOTIONAL_ABOVE_LIMIT = "KEY_NOTIONAL_ABOVE_LIMIT"


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
    """Each limit alone may be set; None sets no limit. The last four are an account's only."""

    version: int
    max_quantity: Decimal | None = None
    max_notional: Decimal | None = None
    price_collar_bps: int | None = None
    max_orders_per_minute: int | None = None
    max_orders_per_day: int | None = None
    max_position_quantity: Decimal | None = None
    max_position_notional: Decimal | None = None
    max_open_orders: int | None = None
    allow_short: bool | None = None
    max_gross_exposure: Decimal | None = None
    max_daily_loss: Decimal | None = None
    allowed_symbols: tuple[str, ...] | None = None
    denied_symbols: tuple[str, ...] | None = None


@dataclass(frozen=True)
class KeyBounds:
    """What the API key that sends a command is bounded to; None bounds nothing.

    `spent` is what its orders have come to in its day, which ends at `day_ends_at`; None is not known. `charged` is how
    much of that is the order's that is replaced.
    """

    symbols: tuple[str, ...] | None = None
    max_notional_per_day: Decimal | None = None
    spent: Decimal | None = None
    charged: Decimal = Decimal(0)
    day_ends_at: datetime | None = None

    @classmethod
    def of(cls, symbols: Collection[str] | None, max_notional_per_day: Decimal | None) -> Self | None:
        """None if the key is bounded by neither."""
        if symbols is None and max_notional_per_day is None:
            return None
        return cls(None if symbols is None else tuple(sorted(symbols)), max_notional_per_day)


@dataclass(frozen=True)
class OrderCounts:
    """CREATE and REPLACE commands accepted in the 60 seconds and the 24 hours before now, and other orders open now.

    None is not known.
    """

    last_minute: int | None = None
    last_day: int | None = None
    open: int | None = None

    def without(self, age: timedelta) -> "OrderCounts":
        """The counts without one order of that age."""
        last_minute = _without(self.last_minute, age < timedelta(minutes=1))
        return replace(self, last_minute=last_minute, last_day=_without(self.last_day, age < timedelta(days=1)))


def _without(count: int | None, is_counted: bool) -> int | None:
    return count if count is None or not is_counted else max(0, count - 1)


@dataclass(frozen=True)
class ReferencePrice:
    """The market's price as it was last seen: where it comes from, and of when it is."""

    value: Decimal
    source: str
    at: datetime


@dataclass(frozen=True)
class Facts:
    """Everything about the account and the symbol that a decision needs. A control that is None is not set.

    `position_quantity` is signed: long is positive, short negative. `open_quantity` is what is still open in the
    account's other orders of the symbol on the command's side, `opposite_open_quantity` on the other side.
    `other_exposure` is the gross exposure in all other symbols. `equity` is what the account was last worth,
    `day_start_equity` what it was worth when its day began. Of all these, of the price and of the counts, None means
    not known: a control that needs it is then NOT_EVALUATED, and what was not evaluated does not pass. A price older
    than `price_max_age` is not known either.
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
    reference_price: ReferencePrice | None = None
    opposite_open_quantity: Decimal | None = None
    other_exposure: Decimal | None = None
    equity: Decimal | None = None
    day_start_equity: Decimal | None = None
    price_max_age: timedelta = PRICE_MAX_AGE
    key_bounds: KeyBounds | None = None

    def usable_price(self, now: datetime) -> Decimal | None:
        """The reference price, unless it is too old to judge by."""
        price = self.reference_price
        return price.value if price and now - price.at <= self.price_max_age else None


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
    trail_amount: Decimal | None = None
    trail_percent: Decimal | None = None
    notional: Decimal | None = None
    """Of an order for so much money: its `quantity` is then what `counted` makes of it."""

    def counted(self, price: Decimal | None) -> "Command":
        """With the quantity by which an order by its notional counts: what it is at a price a tenth below this one.

        The broker decides the quantity when it fills, and the price may have fallen by then.
        """
        if self.notional is None or price is None:
            return self
        quantity = EXACTLY.divide(self.notional, EXACTLY.multiply(price, FALLEN))
        return replace(self, quantity=quantity.quantize(FINEST_QUANTITY, ROUND_UP, EXACTLY))

    def named_prices(self, reference: Decimal) -> list[Decimal]:
        """Limit and stop. A trailing stop names the stop that its trail gives at the reference price."""
        named = (self.limit_price, self.stop_price, self._trailed(reference))
        return [price for price in named if price is not None]

    @property
    def names_prices(self) -> bool:
        return bool(self.named_prices(Decimal(1)))

    def _trailed(self, reference: Decimal) -> Decimal | None:
        away = self.trail_amount
        if self.trail_percent is not None:
            away = EXACTLY.multiply(reference, EXACTLY.multiply(self.trail_percent, _PERCENT))
        if away is None:
            return None
        return EXACTLY.add(reference, away if self.side is OrderSide.BUY else -away)

    @property
    def leaves_quantity(self) -> Decimal:
        """What is still to be filled of the order."""
        return self.quantity - self.filled_quantity


class Check(NamedTuple):
    control: str
    version: int
    outcome: Outcome


class Refusal(NamedTuple):
    code: RefusalCode
    control: str
    version: int
    message: str


class MissingPrices(NamedTuple):
    """The prices for want of which alone a command is refused: of its symbol, and perhaps of all others held or open.

    Which of them are missing, whoever has the prices knows.
    """

    symbol: str
    of_others: bool


@dataclass(frozen=True)
class Decision:
    """ALLOWED or REFUSED, every control that was checked, and every reason to refuse."""

    decision: Verdict
    checks: tuple[Check, ...]
    refusals: tuple[Refusal, ...]
