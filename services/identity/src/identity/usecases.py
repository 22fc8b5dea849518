"""What identity does: one function per use case, one transaction each."""

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine

from chassis import keys
from chassis.outbox import Outbox
from identity import model, store
from identity.signing import Signer


@dataclass(frozen=True)
class Deps:
    engine: Engine
    outbox: Outbox
    signer: Signer


def validate_key(deps: Deps, key: str) -> model.ApiKey:
    """The key's record, also when it is disabled; UnknownKey for anything that is not exactly one of our keys."""
    if not keys.is_well_formed(key):
        raise model.UnknownKey
    digest = keys.digest(key)
    with deps.engine.connect() as tx:
        candidates = store.keys_with_prefix(tx, keys.prefix(key))
    for stored, record in candidates:
        if hmac.compare_digest(stored, digest):
            return record
    raise model.UnknownKey


def create_key(deps: Deps, organization_id: UUID, new: model.NewApiKey) -> tuple[model.ApiKey, str]:
    """A new key: its record, and the key itself, which is nowhere else and never will be again."""
    key = keys.generate(new.environment)
    with deps.engine.begin() as tx:
        record = store.insert_key(tx, uuid4(), organization_id, new, keys.prefix(key), keys.digest(key))
    return record, key


def create_organization(deps: Deps, provider: str, external_id: str, name: str) -> model.Organization:
    with deps.engine.begin() as tx:
        return store.insert_organization(tx, uuid4(), provider, external_id, name)


def put_member(deps: Deps, organization: model.Organization, subject: str, role: str) -> UUID:
    """Make the provider's user a member with this role, knowing them from now on; the user's id here."""
    with deps.engine.begin() as tx:
        user_id = store.upsert_user(tx, uuid4(), organization.provider, subject)
        store.put_membership(tx, organization.id, user_id, role)
    return user_id


def put_user(deps: Deps, provider: str, subject: str) -> UUID:
    with deps.engine.begin() as tx:
        return store.upsert_user(tx, uuid4(), provider, subject)


def put_entitlement(deps: Deps, organization_id: UUID, name: str, expires_at: datetime | None = None) -> None:
    with deps.engine.begin() as tx:
        store.put_entitlement(tx, organization_id, name, expires_at)


def create_service_account(deps: Deps, name: str, scopes: Sequence[str]) -> tuple[model.ServiceAccount, str]:
    """A new service account and its secret, which is shown this once."""
    client_id, secret = f"sa_{secrets.token_hex(12)}", secrets.token_urlsafe(32)
    with deps.engine.begin() as tx:
        account = store.insert_service_account(tx, client_id, name, scopes, keys.digest(secret))
    return account, secret


def issue_token(deps: Deps, claims: Mapping[str, Any], *, lifetime_s: int | None = None) -> str:
    """A token signed here, saying what `claims` say."""
    with deps.engine.begin() as tx:
        key = _signing_key(deps, tx)
    return deps.signer.sign(key, claims, lifetime_s=lifetime_s)


def _signing_key(deps: Deps, tx: Connection) -> model.SigningKey:
    found = model.signing_now(store.signing_keys(tx), store.now(tx))
    if found:
        return found
    store.lock_signing_keys(tx)
    if not store.signing_keys(tx):
        store.insert_signing_key(tx, *deps.signer.generate())
    return store.signing_keys(tx)[0]
