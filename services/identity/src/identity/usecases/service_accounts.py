"""Service accounts. Whoever makes, changes or takes one over must hold every scope it has and is to have."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from chassis import db, keys
from chassis.principals import Principal
from identity import model
from identity.audit import Change
from identity.store import service_accounts as store
from identity.usecases.deps import Deps


def create_service_account(
    deps: Deps, name: str, scopes: Sequence[str], principal: Principal | None = None
) -> tuple[model.ServiceAccount, str]:
    """A new service account and its secret, which is shown this once. Without a principal: made by hand."""
    client_id, secret = f"sa_{secrets.token_hex(12)}", _new_secret()
    with deps.outbox.begin() as tx:
        store.lock_all(tx)
        _check_grant(tx, principal, scopes)
        account = store.add(tx, client_id, name, scopes, keys.digest(secret))
        model.check_limit(store.count(tx), deps.limits.service_accounts)
        change = Change("service_account.created", None, client_id, None, account)
        deps.record_change(tx, principal, change, client_id=client_id)
    return account, secret


def get_service_account(deps: Deps, client_id: str) -> model.ServiceAccount:
    with db.reading(deps.engine) as tx:
        return _found(store.find(tx, client_id))


def list_service_accounts(deps: Deps, after: tuple[datetime, str] | None, limit: int) -> list[model.ServiceAccount]:
    with db.reading(deps.engine) as tx:
        return store.page(tx, after, limit)


def change_service_account(
    deps: Deps, principal: Principal, client_id: str, changes: Mapping[str, Any]
) -> model.ServiceAccount:
    """Switching one off needs no more than the right to.

    Also who takes scopes away must hold them: else a weaker one could empty the account, replace its secret, and wait
    until somebody gives the scopes back.
    """
    with deps.outbox.begin() as tx:
        store.lock_all(tx)
        before = _found(store.find(tx, client_id))
        if dict(changes) != {"disabled": True}:
            _check_grant(tx, principal, {*before.scopes, *changes.get("scopes", ())})
        changed = store.change(tx, client_id, changes)
        change = Change("service_account.updated", None, client_id, before, changed)
        deps.record_change(tx, principal, change, client_id=client_id)
    return changed


def rotate_secret(deps: Deps, principal: Principal, client_id: str) -> tuple[model.ServiceAccount, str]:
    """A new secret in place of the old; tokens already issued run out by themselves."""
    secret = _new_secret()
    with deps.outbox.begin() as tx:
        store.lock_all(tx)
        before = _found(store.find(tx, client_id))
        _check_grant(tx, principal, before.scopes)
        changed = store.change(tx, client_id, {"secret_digest": keys.digest(secret)})
        deps.record_change(tx, principal, Change("service_account.updated", None, client_id), client_id=client_id)
    return changed, secret


def delete_service_account(deps: Deps, principal: Principal, client_id: str) -> None:
    with deps.outbox.begin() as tx:
        store.lock_all(tx)
        before = _found(store.remove(tx, client_id))
        change = Change("service_account.deleted", None, client_id, before)
        deps.record_change(tx, principal, change, client_id=client_id)


def _check_grant(tx: Connection, principal: Principal | None, scopes: Collection[str]) -> None:
    """The caller's scopes are read again behind the lock: who waited may have lost them."""
    beyond = set(scopes) - (principal.grants & store.current_scopes(tx, principal.id)) if principal else set()
    if beyond:
        raise model.GrantTooWide(f"Your scopes do not cover {', '.join(sorted(beyond))}.")


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


def _found(account: model.ServiceAccount | None) -> model.ServiceAccount:
    if account is None:
        raise model.NotFound
    return account
