"""API keys: never the key, only its digest."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)

from identity import model
from identity.store.tables import api_key

_SHOWN = [column for column in api_key.c if column.name != "key_digest"]
_REFUSED: ColumnElement[bool] = literal_column(
    "NOT EXISTS (SELECT FROM identity_api.usable_key(identity.api_key.key_digest))", Boolean
)


def with_prefix(tx: Connection, prefix: str) -> list[tuple[bytes, model.ApiKey, bool]]:
    """The keys whose public part this is, each with its digest and whether it is not usable.

    Two with one prefix are unlikely, not impossible.
    """
    found = select(api_key, _REFUSED.label("refused")).where(api_key.c.prefix == prefix)
    return [(bytes(row.key_digest), _api_key(row), row.refused) for row in tx.execute(found)]


def add(
    tx: Connection, key_id: UUID, organization_id: UUID, new: model.NewApiKey, prefix: str, digest: bytes
) -> model.ApiKey:
    values = {
        "id": key_id,
        "organization_id": organization_id,
        "name": new.name,
        "environment": new.environment,
        "permissions": list(new.permissions),
        "prefix": prefix,
        "key_digest": digest,
        "expires_at": new.expires_at,
        "bounds": new.bounds and new.bounds.as_json,
    }
    return _api_key(tx.execute(insert(api_key).values(values).returning(*_SHOWN)).one())


def count(tx: Connection, organization_id: UUID) -> int:
    counted = select(func.count()).select_from(api_key).where(api_key.c.organization_id == organization_id)
    return tx.execute(counted).scalar_one()


def find(tx: Connection, organization_id: UUID, key_id: UUID) -> model.ApiKey | None:
    row = tx.execute(select(*_SHOWN).where(_own(organization_id, key_id))).one_or_none()
    return _api_key(row) if row else None


def lock(tx: Connection, organization_id: UUID, key_id: UUID) -> model.ApiKey | None:
    """The key, with nobody else changing it until the transaction ends."""
    row = tx.execute(select(*_SHOWN).where(_own(organization_id, key_id)).with_for_update()).one_or_none()
    return _api_key(row) if row else None


def page(tx: Connection, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> list[model.ApiKey]:
    found = select(*_SHOWN).where(api_key.c.organization_id == organization_id)
    found = found.order_by(api_key.c.created_at, api_key.c.id).limit(limit)
    if after:
        found = found.where(tuple_(api_key.c.created_at, api_key.c.id) > tuple_(*after))
    return [_api_key(row) for row in tx.execute(found)]


def change(tx: Connection, organization_id: UUID, key_id: UUID, values: Mapping[str, Any]) -> model.ApiKey | None:
    stored = {name: value.as_json if isinstance(value, model.Bounds) else value for name, value in values.items()}
    changed = update(api_key).where(_own(organization_id, key_id)).values(**stored).returning(*_SHOWN)
    row = tx.execute(changed).one_or_none()
    return _api_key(row) if row else None


def remove(tx: Connection, organization_id: UUID, key_id: UUID) -> model.ApiKey | None:
    row = tx.execute(delete(api_key).where(_own(organization_id, key_id)).returning(*_SHOWN)).one_or_none()
    return _api_key(row) if row else None


def record_uses(tx: Connection, uses: Mapping[UUID, datetime]) -> None:
    """A use never moves the moment back."""
    later = func.greatest(api_key.c.last_used_at, bindparam("used_at"))
    recorded = update(api_key).where(api_key.c.id == bindparam("used_id")).values(last_used_at=later)
    tx.execute(recorded, [{"used_id": key_id, "used_at": moment} for key_id, moment in sorted(uses.items())])


def _own(organization_id: UUID, key_id: UUID) -> Any:
    return (api_key.c.organization_id == organization_id) & (api_key.c.id == key_id)


def _api_key(row: object) -> model.ApiKey:
    shown = {column.name: getattr(row, column.name) for column in _SHOWN}
    made = {"permissions": tuple(shown["permissions"]), "bounds": model.Bounds.from_json(shown["bounds"])}
    return model.ApiKey(**shown | made)
