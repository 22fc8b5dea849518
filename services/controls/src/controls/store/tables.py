"""controls' tables as SQLAlchemy sees them; migrations make them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    Time,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON

from chassis import db, feed
from chassis.outbox import ddl
from controls import model

SCHEMA = "controls"
METADATA = db.metadata(SCHEMA)


def _table(name: str, key: Sequence[Column[Any]], values: Sequence[Any]) -> Table:
    return Table(
        name,
        METADATA,
        *key,
        *values,
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
        Column("deleted_at", DateTime(timezone=True)),
        Column("version", BigInteger, nullable=False, server_default="1"),
    )


def _account_key() -> list[Column[Any]]:
    return [Column("account_id", Uuid, primary_key=True), Column("organization_id", Uuid, nullable=False)]


def _symbol_key() -> list[Column[Any]]:
    return [*_account_key(), Column("symbol", Text(collation="C"), primary_key=True)]


def _switch() -> list[Any]:
    return [
        Column("trading_state", Text, nullable=False),
        Column("reason", Text),
        CheckConstraint("trading_state IN ('ACTIVE', 'REDUCING', 'HALTED')", name="trading_state"),
    ]


def _limits() -> list[Any]:
    return [
        Column("max_quantity", Numeric),
        Column("max_notional", Numeric),
        Column("price_collar_bps", Integer),
        Column("max_orders_per_minute", Integer),
        Column("max_orders_per_day", Integer),
        CheckConstraint("max_quantity > 0 AND max_quantity < 1e15", name="max_quantity"),
        CheckConstraint("max_notional > 0 AND max_notional < 1e15", name="max_notional"),
        CheckConstraint("price_collar_bps > 0", name="price_collar_bps"),
        CheckConstraint("max_orders_per_minute > 0", name="max_orders_per_minute"),
        CheckConstraint("max_orders_per_day > 0", name="max_orders_per_day"),
        Column("max_position_quantity", Numeric),
        Column("max_position_notional", Numeric),
        Column("max_open_orders", Integer),
        Column("allow_short", Boolean),
        CheckConstraint("max_position_quantity > 0 AND max_position_quantity < 1e15", name="max_position_quantity"),
        CheckConstraint("max_position_notional > 0 AND max_position_notional < 1e15", name="max_position_notional"),
        CheckConstraint("max_open_orders > 0", name="max_open_orders"),
    ]


def _account_limits() -> list[Any]:
    return [
        *_limits(),
        Column("max_gross_exposure", Numeric),
        Column("max_daily_loss", Numeric),
        Column("allowed_symbols", ARRAY(Text)),
        Column("denied_symbols", ARRAY(Text)),
        CheckConstraint("max_gross_exposure > 0 AND max_gross_exposure < 1e15", name="max_gross_exposure"),
        CheckConstraint("max_daily_loss > 0 AND max_daily_loss < 1e15", name="max_daily_loss"),
    ]


def _manual() -> list[Any]:
    return [Column("manually_disabled", Boolean, nullable=False), Column("manual_reason", Text)]


def _time() -> list[Any]:
    return [
        Column("trading_start", Time),
        Column("trading_end", Time),
        Column("stale_order_millis", Integer),
        CheckConstraint("coalesce(trading_start, '00:00') <> trading_end", name="window"),
        CheckConstraint("stale_order_millis BETWEEN 1000 AND 86400000", name="stale_order_millis"),
    ]


TABLES: dict[type[model.Control], Table] = {
    model.OrganizationSwitch: _table(
        "organization_switch", [Column("organization_id", Uuid, primary_key=True)], _switch()
    ),
    model.AccountSwitch: _table("account_switch", _account_key(), _switch()),
    model.AccountLimits: _table("account_limits", _account_key(), _account_limits()),
    model.SymbolManual: _table("symbol_manual", _symbol_key(), _manual()),
    model.SymbolTime: _table("symbol_time", _symbol_key(), _time()),
    model.SymbolLimits: _table("symbol_limits", _symbol_key(), _limits()),
}
OF_SYMBOLS = (model.SymbolManual, model.SymbolTime, model.SymbolLimits)
OF_ACCOUNTS = (model.AccountSwitch, model.AccountLimits, *OF_SYMBOLS)
control_change = Table(
    "control_change",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("account_id", Uuid),
    Column("symbol", Text(collation="C")),
    Column("control", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("value_before", JSON(none_as_null=True)),
    Column("value_after", JSON(none_as_null=True)),
    Column("actor_type", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("request_id", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("control_change_account_idx", "account_id", "id"),
    Index("control_change_symbol_idx", "account_id", "symbol", "id"),
    Index("control_change_organization_idx", "organization_id", "id", postgresql_where=text("account_id IS NULL")),
)
ddl.tables(METADATA)
feed.table(METADATA)
