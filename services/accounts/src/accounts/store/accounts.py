"""SQL on trading accounts."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, func, insert, select, tuple_, update

from accounts import model
from accounts.store.tables import account

_SHOWN = [column for column in account.c if column.name != "deleted_at"]
Position = tuple[datetime, UUID]
FINISHED_AT_ONCE = 100
ABANDONED_AFTER = timedelta(seconds=30)
"""Longer than a request that deletes an account takes."""


def insert_account(tx: Connection, account_id: UUID, organization_id: UUID, new: model.NewAccount) -> model.Account:
    values = asdict(new) | {"id": account_id, "organization_id": organization_id}
    return model.Account(**tx.execute(insert(account).values(values).returning(*_SHOWN)).one()._mapping)


def lock_organization(tx: Connection, organization_id: UUID) -> None:
    """Nobody else adds an account to the organization until the transaction ends."""
    name = func.hashtextextended(f"accounts.account:{organization_id}", 0)
    tx.execute(select(func.pg_advisory_xact_lock(name)))


def count_accounts(tx: Connection, organization_id: UUID) -> int:
    alive = (account.c.organization_id == organization_id) & account.c.deleted_at.is_(None)
    return tx.execute(select(func.count()).select_from(account).where(alive)).scalar_one()


def find_account(
    tx: Connection, organization_id: UUID, account_id: UUID, *, lock: bool = False
) -> model.Account | None:
    """The organization's account; None also when it is another's. `lock` holds it until the transaction ends."""
    wanted = _alive().where(account.c.id == account_id, account.c.organization_id == organization_id)
    row = tx.execute(wanted.with_for_update() if lock else wanted).one_or_none()
    return model.Account(**row._mapping) if row else None


def list_accounts(
    tx: Connection,
    organization_id: UUID,
    environment: str | None,
    after: Position | None,
    limit: int,
    only: Collection[UUID] | None = None,
) -> list[model.Account]:
    """Oldest first; `environment` None means both, `only` None all accounts."""
    wanted = _alive().where(account.c.organization_id == organization_id)
    if only is not None:
        wanted = wanted.where(account.c.id.in_(only))
    if environment is not None:
        wanted = wanted.where(account.c.environment == environment)
    if after is not None:
        wanted = wanted.where(tuple_(account.c.created_at, account.c.id) > tuple_(*after))
    rows = tx.execute(wanted.order_by(account.c.created_at, account.c.id).limit(limit))
    return [model.Account(**row._mapping) for row in rows]


def update_account(tx: Connection, account_id: UUID, changes: Mapping[str, Any]) -> model.Account:
    """Make the changes and count the version up."""
    changed = update(account).where(account.c.id == account_id)
    changed = changed.values(**changes, version=account.c.version + 1, updated_at=func.now())
    return model.Account(**tx.execute(changed.returning(*_SHOWN)).one()._mapping)


def close_account(tx: Connection, account_id: UUID) -> None:
    """It accepts no intents from the commit on."""
    unclosed = (account.c.id == account_id) & account.c.closing_at.is_(None)
    tx.execute(update(account).where(unclosed).values(closing_at=func.now()))


def reopen_account(tx: Connection, account_id: UUID) -> None:
    tx.execute(update(account).where(account.c.id == account_id).values(closing_at=None))


def record_closing_operation(tx: Connection, account_id: UUID, operation_id: UUID) -> model.Account:
    values = {"closing_operation_id": operation_id}
    recorded = update(account).where(account.c.id == account_id).values(values).returning(*_SHOWN)
    return model.Account(**tx.execute(recorded).one()._mapping)


def open_orders(tx: Connection, account_id: UUID) -> int:
    """How many of the account's intents are open, and how many orders may be at its broker."""
    return tx.execute(select(_open_orders(account_id))).scalar_one()


def accounts_to_finish(tx: Connection) -> list[UUID]:
    """Closed accounts without an open order, and those that a request has left closed without deciding."""
    abandoned = account.c.closing_operation_id.is_(None) & (account.c.closing_at < func.now() - ABANDONED_AFTER)
    due = (_open_orders(account.c.id) == 0) | abandoned
    return list(tx.execute(select(account.c.id).where(_closed(), due).limit(FINISHED_AT_ONCE)).scalars())


def lock_closed_account(tx: Connection, account_id: UUID) -> model.Account | None:
    wanted = select(*_SHOWN).where(_closed(), account.c.id == account_id).with_for_update()
    row = tx.execute(wanted).one_or_none()
    return model.Account(**row._mapping) if row else None


def _open_orders(account_id: Any) -> ColumnElement[int]:
    return func.intents_api.open_orders(account_id, type_=BigInteger)


def _closed() -> ColumnElement[bool]:
    return account.c.closing_at.is_not(None) & account.c.deleted_at.is_(None)


def _alive() -> Select[Any]:
    return select(*_SHOWN).where(account.c.deleted_at.is_(None))
