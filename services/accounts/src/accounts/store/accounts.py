"""SQL on trading accounts."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, insert, select, tuple_, update

from accounts import model
from accounts.store.tables import account

_SHOWN = [column for column in account.c if column.name != "deleted_at"]
Position = tuple[datetime, UUID]


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
    tx: Connection, organization_id: UUID, environment: str | None, after: Position | None, limit: int
) -> list[model.Account]:
    """Oldest first; `environment` None means both."""
    wanted = _alive().where(account.c.organization_id == organization_id)
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


def _alive() -> Select[Any]:
    return select(*_SHOWN).where(account.c.deleted_at.is_(None))
