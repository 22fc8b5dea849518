"""Service accounts: never the secret, only its digest."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, tuple_, update

from identity import model
from identity.store.tables import service_account


def add(tx: Connection, client_id: str, name: str, scopes: Sequence[str], secret_digest: bytes) -> model.ServiceAccount:
    values = {"client_id": client_id, "name": name, "scopes": list(scopes), "secret_digest": secret_digest}
    return _service_account(tx.execute(insert(service_account).values(values).returning(service_account)).one())


def lock_all(tx: Connection) -> None:
    """Nobody else adds or changes one until the transaction ends."""
    tx.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('identity.service_account', 0))"))


def count(tx: Connection) -> int:
    return tx.execute(select(func.count()).select_from(service_account)).scalar_one()


def find_with_digest(tx: Connection, client_id: str) -> tuple[bytes, model.ServiceAccount] | None:
    row = tx.execute(select(service_account).where(service_account.c.client_id == client_id)).one_or_none()
    return (bytes(row.secret_digest), _service_account(row)) if row else None


def find(tx: Connection, client_id: str) -> model.ServiceAccount | None:
    found = find_with_digest(tx, client_id)
    return found[1] if found else None


def current_scopes(tx: Connection, client_id: str) -> frozenset[str]:
    """What the account may give now: nothing when it is switched off or gone."""
    account = find(tx, client_id)
    return frozenset(account.scopes if account and not account.disabled else ())


def page(tx: Connection, after: tuple[datetime, str] | None, limit: int) -> list[model.ServiceAccount]:
    found = select(service_account).order_by(service_account.c.created_at, service_account.c.client_id).limit(limit)
    if after:
        found = found.where(tuple_(service_account.c.created_at, service_account.c.client_id) > tuple_(*after))
    return [_service_account(row) for row in tx.execute(found)]


def change(tx: Connection, client_id: str, values: Mapping[str, Any]) -> model.ServiceAccount:
    changed = update(service_account).where(service_account.c.client_id == client_id).values(**values)
    return _service_account(tx.execute(changed.returning(service_account)).one())


def remove(tx: Connection, client_id: str) -> model.ServiceAccount | None:
    removed = delete(service_account).where(service_account.c.client_id == client_id)
    row = tx.execute(removed.returning(service_account)).one_or_none()
    return _service_account(row) if row else None


def _service_account(row: Any) -> model.ServiceAccount:
    return model.ServiceAccount(row.client_id, row.name, tuple(row.scopes), row.disabled, row.created_at)
