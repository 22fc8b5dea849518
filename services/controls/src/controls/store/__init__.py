"""The only SQL on controls' tables."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    Table,
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
from sqlalchemy.dialects.postgresql import insert

from controls import model
from controls.store.key_spending import key_spending
from controls.store.prices import request_prices, unpriced_symbols
from controls.store.tables import METADATA, OF_ACCOUNTS, OF_SYMBOLS, SCHEMA, TABLES, control_change

__all__ = [
    "METADATA",
    "OF_ACCOUNTS",
    "OF_SYMBOLS",
    "SCHEMA",
    "TABLES",
    "AnyControl",
    "account",
    "append_change",
    "changes",
    "control_change",
    "facts",
    "find",
    "forget_account",
    "keep_account",
    "key_spending",
    "lock",
    "name",
    "of_symbols",
    "remove",
    "request_prices",
    "symbols_after",
    "unpriced_symbols",
    "write",
]

AnyControl = TypeVar("AnyControl", bound=model.Control)

# Columns without a default, as a new row has them.
_BLANK = {"trading_state": "ACTIVE", "manually_disabled": False}

_ACCOUNT = text("SELECT id, organization_id, environment FROM accounts_api.account WHERE id = :account_id")
_TIME_ZONE = text("SELECT time_zone FROM accounts_api.account WHERE id = :account_id")
# By indexes: row-level security hides from the planner that few of an account's symbols are held or open.
_FACTS = text("""
    SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
    SELECT a.time_zone, a.disabled AS account_disabled, a.version AS account_version, r.*, f.*
    FROM accounts_api.account a CROSS JOIN LATERAL controls.rules(a.organization_id, a.id, :symbol) r
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


def time_zone(tx: Connection, account_id: UUID) -> str | None:
    """None once the account is gone."""
    zone: str | None = tx.execute(_TIME_ZONE, {"account_id": account_id}).scalar_one_or_none()
    return zone


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
