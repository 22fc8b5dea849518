"""controls' tables and the only SQL on them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Identity,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    Time,
    Uuid,
    and_,
    bindparam,
    case,
    delete,
    func,
    select,
    text,
    union,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, insert

from chassis import db, feed
from chassis.outbox import ddl
from controls import model

SCHEMA = "controls"
METADATA = db.metadata(SCHEMA)
AnyControl = TypeVar("AnyControl", bound=model.Control)


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

# Columns without a default, as a new row has them.
_BLANK = {"trading_state": "ACTIVE", "manually_disabled": False}

_ACCOUNT = text("SELECT id, organization_id, environment FROM accounts_api.account WHERE id = :account_id")
_FACTS = text("""
    SELECT a.time_zone, a.disabled AS account_disabled, a.version AS account_version, r.*, f.*
    FROM accounts_api.account a CROSS JOIN LATERAL controls_api.rules(a.organization_id, a.id, :symbol) r
    CROSS JOIN LATERAL intents_api.order_facts(a.id, :symbol, :side, :intent_id, :at, :price_max_age, true) f
    WHERE a.id = :account_id
""").bindparams(bindparam("intent_id", type_=Uuid), bindparam("at", type_=DateTime(timezone=True)))
_LOCK_SHARED = text("SELECT pg_advisory_xact_lock_shared(hashtextextended('controls:' || :account_id, 0))")
_LOCK_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended('controls:' || :account_id, 0))")


def name(kind: type[model.Control]) -> str:
    """What checks and messages call the control."""
    return TABLES[kind].name


def account(tx: Connection, account_id: UUID) -> model.Account | None:
    row = tx.execute(_ACCOUNT, {"account_id": account_id}).one_or_none()
    return model.Account(row.id, row.organization_id, row.environment) if row else None


def facts(
    tx: Connection, account_id: UUID, wanted: model.Preview, price_max_age: timedelta
) -> Mapping[str, Any] | None:
    """What a submit of the command would be decided by; None once the account is gone."""
    command = wanted.command
    values = {
        "account_id": account_id,
        "symbol": command.symbol,
        "side": command.side and str(command.side),
        "intent_id": wanted.intent_id,
        "at": wanted.at,
        "price_max_age": price_max_age,
    }
    row = tx.execute(_FACTS, values).one_or_none()
    return row._asdict() if row else None


def keep_account(tx: Connection, account_id: UUID) -> None:
    """Until the end of the transaction nobody removes the account's controls; read the account after this."""
    tx.execute(_LOCK_SHARED, {"account_id": str(account_id)})


def find(tx: Connection, kind: type[AnyControl], scope: model.Scope) -> AnyControl | None:
    table = TABLES[kind]
    row = tx.execute(select(table).where(_is(table, scope), table.c.deleted_at.is_(None))).one_or_none()
    return _control(kind, row) if row else None


def lock(tx: Connection, kind: type[AnyControl], scope: model.Scope) -> AnyControl | None:
    """The control, held until the end of the transaction also when there is none yet."""
    table = TABLES[kind]
    blank = {column: value for column, value in _BLANK.items() if column in table.c}
    tombstone = insert(table).values(**_key(table, scope), **blank, version=0, deleted_at=func.now())
    tx.execute(tombstone.on_conflict_do_nothing())
    row = tx.execute(select(table).where(_is(table, scope)).with_for_update()).one()
    return None if row.deleted_at else _control(kind, row)


def write(tx: Connection, kind: type[AnyControl], scope: model.Scope, values: Mapping[str, Any]) -> AnyControl:
    """Replace the values of a control held by `lock`, and count its version up."""
    table = TABLES[kind]
    changed = (
        update(table)
        .where(_is(table, scope))
        .values(
            **values,
            created_at=case((table.c.deleted_at.is_(None), table.c.created_at), else_=func.now()),
            updated_at=func.now(),
            deleted_at=None,
            version=table.c.version + 1,
        )
    )
    return _control(kind, tx.execute(changed.returning(table)).one())


def remove(tx: Connection, kind: type[AnyControl], scope: model.Scope) -> AnyControl:
    table = TABLES[kind]
    gone = update(table).where(_is(table, scope)).values(deleted_at=func.now(), version=table.c.version + 1)
    return _control(kind, tx.execute(gone.returning(table)).one())


def append_change(tx: Connection, scope: model.Scope, values: Mapping[str, Any]) -> None:
    """Add a line to the history, in the transaction of the change."""
    tx.execute(insert(control_change).values(**_key(control_change, scope), **values))


def changes(tx: Connection, scope: model.Scope, before: int | None, limit: int) -> list[model.ControlChange]:
    """The history of an account's controls, of one of its symbols, or of the organization's own, newest first."""
    columns = control_change.c
    wanted = [columns.account_id == scope.account_id]
    if scope.account_id is None:
        wanted = [columns.organization_id == scope.organization_id, columns.account_id.is_(None)]
    if scope.symbol is not None:
        wanted.append(columns.symbol == scope.symbol)
    if before is not None:
        wanted.append(columns.id < before)
    rows = tx.execute(select(control_change).where(*wanted).order_by(columns.id.desc()).limit(limit)).mappings()
    return [_changed(dict(row)) for row in rows]


def _changed(row: dict[str, Any]) -> model.ControlChange:
    actor = model.Actor(row.pop("actor_type"), row.pop("actor_id"))
    return model.ControlChange(**row, actor=actor)


def symbols_after(tx: Connection, account_id: UUID, after: str, limit: int) -> list[str]:
    """The symbols that have a control, in order."""
    columns = [
        select(table.c.symbol).where(
            table.c.account_id == account_id, table.c.symbol > after, table.c.deleted_at.is_(None)
        )
        for table in (TABLES[kind] for kind in OF_SYMBOLS)
    ]
    found = union(*columns).subquery()
    return list(tx.execute(select(found.c.symbol).order_by(found.c.symbol).limit(limit)).scalars())


def of_symbols(
    tx: Connection, kind: type[AnyControl], account_id: UUID, symbols: Sequence[str]
) -> dict[str, AnyControl]:
    table = TABLES[kind]
    rows = tx.execute(
        select(table).where(table.c.account_id == account_id, table.c.symbol.in_(symbols), table.c.deleted_at.is_(None))
    )
    return {row.symbol: _control(kind, row) for row in rows}


def forget_account(tx: Connection, account_id: UUID) -> int:
    """Remove every control of the account, after whoever is just writing one; how many rows there were."""
    tx.execute(_LOCK_ALONE, {"account_id": str(account_id)})
    tables = [TABLES[kind] for kind in OF_ACCOUNTS]
    return sum(tx.execute(delete(table).where(table.c.account_id == account_id)).rowcount for table in tables)


def _key(table: Table, scope: model.Scope) -> dict[str, Any]:
    named = {"organization_id": scope.organization_id, "account_id": scope.account_id, "symbol": scope.symbol}
    return {column: value for column, value in named.items() if column in table.c}


def _is(table: Table, scope: model.Scope) -> ColumnElement[bool]:
    return and_(*(table.c[column] == value for column, value in _key(table, scope).items()))


def _control(kind: type[AnyControl], row: Any) -> AnyControl:
    return kind(**{column: value for column, value in row._mapping.items() if column != "deleted_at"})
