"""API keys: making, showing, changing, and recognising them."""

import hmac
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chassis import db, keys, tenancy
from chassis.principals import Kind, Principal
from identity import model
from identity.audit import Change
from identity.store import api_keys as store
from identity.store import organizations, service_accounts
from identity.usecases.deps import Deps
from identity.usecases.people import lock_as_admin


def validate_key(deps: Deps, key: str) -> model.ApiKey:
    """The key's record, `disabled` if for any reason it opens nothing; UnknownKey if it is not exactly one of ours."""
    if not keys.is_well_formed(key):
        raise model.UnknownKey
    digest = keys.digest(key)
    with tenancy.serving_keys([digest]), db.reading(deps.engine) as tx:
        candidates = store.with_prefix(tx, keys.prefix(key))
    for stored, record, refused in candidates:
        if hmac.compare_digest(stored, digest):
            return replace(record, disabled=refused)
    raise model.UnknownKey


def create_key(
    deps: Deps, organization_id: UUID, new: model.NewApiKey, principal: Principal | None = None
) -> tuple[model.ApiKey, str]:
    """A new key: its record, and the key itself, which is stored nowhere."""
    key = keys.generate(new.environment)
    with deps.outbox.begin() as tx:
        _check_grant(tx, principal, organization_id, new.permissions)
        record = store.add(tx, uuid4(), organization_id, new, keys.prefix(key), keys.digest(key))
        model.check_limit(store.count(tx, organization_id), deps.limits.api_keys)
        change = Change("api_key.created", organization_id, str(record.id), None, record)
        deps.record_change(tx, principal, change, api_key_id=record.id)
    return record, key


def get_key(deps: Deps, organization_id: UUID, key_id: UUID) -> model.ApiKey:
    with db.reading(deps.engine) as tx:
        return _found(store.find(tx, organization_id, key_id))


def list_keys(deps: Deps, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> list[model.ApiKey]:
    with db.reading(deps.engine) as tx:
        return store.page(tx, organization_id, after, limit)


def change_key(
    deps: Deps, principal: Principal, organization_id: UUID, key_id: UUID, changes: Mapping[str, Any]
) -> model.ApiKey:
    with deps.outbox.begin() as tx:
        before = _found(store.lock(tx, organization_id, key_id))
        if permissions := model.permissions_given(before, changes):
            _check_grant(tx, principal, organization_id, permissions)
        changed = _found(store.change(tx, organization_id, key_id, changes))
        change = Change("api_key.updated", organization_id, str(key_id), before, changed)
        deps.record_change(tx, principal, change, api_key_id=key_id)
    return changed


def delete_key(deps: Deps, principal: Principal, organization_id: UUID, key_id: UUID) -> None:
    with deps.outbox.begin() as tx:
        before = _found(store.remove(tx, organization_id, key_id))
        change = Change("api_key.deleted", organization_id, str(key_id), before)
        deps.record_change(tx, principal, change, api_key_id=key_id)


def record_key_uses(deps: Deps, uses: Mapping[UUID, datetime]) -> None:
    if uses:
        with deps.engine.begin() as tx:
            store.record_uses(tx, uses)


def _check_grant(
    tx: Connection, principal: Principal | None, organization_id: UUID, permissions: Collection[str]
) -> None:
    """An admin may do everything in the organization already; a service account only what its scopes say.

    Both are read again behind the lock on the organization: who waited may have lost the role or the scope.
    """
    if principal is None or principal.kind is not Kind.SERVICE_ACCOUNT:
        lock_as_admin(tx, principal, organization_id)
        return
    organizations.lock(tx, organization_id)
    held = principal.grants & service_accounts.current_scopes(tx, principal.id)
    beyond = model.permissions_beyond(held, permissions)
    if beyond:
        raise model.GrantTooWide(f"Your scopes do not cover {', '.join(sorted(beyond))}.")


def _found(record: model.ApiKey | None) -> model.ApiKey:
    if record is None:
        raise model.NotFound
    return record
