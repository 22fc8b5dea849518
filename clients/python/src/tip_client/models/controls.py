"""Controls, their history, and previews."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from tip_client.errors import Reason
from tip_client.models.trading import Actor, ControlCheck
from tip_client.records import KEY
from tip_client.words import Decision, TradingState


@dataclass(frozen=True)
class SymbolManualControl:
    """Whether a symbol is disabled by hand."""

    account_id: str
    organization_id: str
    symbol: str
    manually_disabled: bool
    manual_reason: str | None
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True)
class SymbolTimeControl:
    """When a symbol is traded, in the account's zone, and when its orders are stale."""

    account_id: str
    organization_id: str
    symbol: str
    trading_start: time | None
    trading_end: time | None
    time_zone: str | None
    stale_order_millis: int | None
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True)
class AccountSwitch:
    """The trading state of an account."""

    account_id: str
    organization_id: str
    trading_state: TradingState
    reason: str | None
    bulk_operation_id: str | None
    """Of the answer to `cancel_open`: the operation that cancels."""
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True)
class OrganizationSwitch:
    """The trading state of a whole organization."""

    organization_id: str
    trading_state: TradingState
    reason: str | None
    bulk_operation_id: str | None
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True, kw_only=True)
class SymbolLimits:
    """Limits of a symbol on an account; None is no limit."""

    account_id: str
    organization_id: str
    symbol: str
    max_quantity: Decimal | None
    max_notional: Decimal | None
    price_collar_bps: int | None
    max_orders_per_minute: int | None
    max_orders_per_day: int | None
    max_position_quantity: Decimal | None
    max_position_notional: Decimal | None
    max_open_orders: int | None
    allow_short: bool | None
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True, kw_only=True)
class AccountLimits:
    """Limits of an account; None is no limit."""

    account_id: str
    organization_id: str
    max_quantity: Decimal | None
    max_notional: Decimal | None
    price_collar_bps: int | None
    max_orders_per_minute: int | None
    max_orders_per_day: int | None
    max_position_quantity: Decimal | None
    max_position_notional: Decimal | None
    max_open_orders: int | None
    allow_short: bool | None
    max_gross_exposure: Decimal | None
    max_daily_loss: Decimal | None
    allowed_symbols: tuple[str, ...] | None
    denied_symbols: tuple[str, ...] | None
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True)
class SymbolControls:
    """Every control of a symbol; None where there is none."""

    account_id: str
    organization_id: str
    symbol: str
    manual: SymbolManualControl | None
    time: SymbolTimeControl | None
    limits: SymbolLimits | None


@dataclass(frozen=True)
class ControlChange:
    """A change of a control; `from_` or `to` is None where there was none."""

    control: str
    account_id: str | None
    symbol: str | None
    version: int
    from_: Mapping[str, Any] | None = field(metadata={KEY: "from"})
    to: Mapping[str, Any] | None
    actor: Actor
    request_id: str | None
    created_at: datetime


@dataclass(frozen=True)
class PreviewFacts:
    """The facts that decided; None is not known."""

    position_quantity: Decimal | None
    open_quantity: Decimal
    opposite_open_quantity: Decimal
    reference_price: Decimal | None
    reference_price_source: str | None
    reference_price_at: datetime | None
    other_exposure: Decimal | None
    equity: Decimal | None
    day_start_equity: Decimal | None
    account_orders_last_minute: int
    account_orders_last_day: int
    account_open_orders: int
    symbol_orders_last_minute: int
    symbol_orders_last_day: int
    symbol_open_orders: int


@dataclass(frozen=True)
class Preview:
    """Whether a command would pass the controls, and why not."""

    account_id: str
    at: datetime
    decision: Decision
    checks: tuple[ControlCheck, ...]
    reasons: tuple[Reason, ...]
    facts: PreviewFacts

    @property
    def is_allowed(self) -> bool:
        return self.decision is Decision.ALLOWED
