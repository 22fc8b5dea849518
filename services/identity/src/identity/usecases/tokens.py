"""Tokens signed here, and the keys that sign them."""

import hmac
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from chassis import db, keys
from chassis.sealing import BrokenSeal
from identity import model
from identity.store import service_accounts
from identity.store import signing_keys as store
from identity.usecases.deps import Deps

_NOBODY = keys.digest("")  # compared with when there is no such client, so that both take as long


def grant_token(deps: Deps, client_id: str, secret: str, scope: str | None) -> tuple[str, tuple[str, ...]]:
    """A token for a service account that proves itself, with the requested scopes or else all it has."""
    with db.reading(deps.engine) as tx:
        found = service_accounts.find_with_digest(tx, client_id)
    stored, account = found or (_NOBODY, None)
    if not hmac.compare_digest(stored, keys.digest(secret)) or account is None or account.disabled:
        raise model.TokenRefused("invalid_client", "Unknown client, or wrong secret.")
    scopes = account.scopes if scope is None else tuple(dict.fromkeys(scope.split()))
    if not scopes or not set(scopes) <= set(account.scopes):
        raise model.TokenRefused("invalid_scope", "The client does not have all of these scopes.")
    claims = {"sub": client_id, "principal_type": "service_account", "scope": " ".join(scopes)}
    return issue_token(deps, claims), scopes


def issue_token(deps: Deps, claims: Mapping[str, Any], *, lifetime_s: int | None = None) -> str:
    """A token signed here, saying what `claims` say."""
    key = _signing_key(deps)
    if lifetime_s is not None and lifetime_s > deps.signer.lifetime_s:
        with deps.engine.begin() as tx:
            store.need_for(tx, key.kid, timedelta(seconds=lifetime_s))
    return deps.signer.sign(key, claims, lifetime_s=lifetime_s)


def public_keys(deps: Deps) -> list[Mapping[str, Any]]:
    """Every key that a valid token may have been signed with; never none."""
    with db.reading(deps.engine) as tx:
        accepted = store.accepted(tx)
    return [key.public_jwk for key in accepted or _first_keys(deps)]


def rotate_signing_keys(deps: Deps) -> str:
    """A new key, which signs as soon as all can have seen it; the id of it. Old ones stay until nothing needs them."""
    generated = deps.signer.generate()
    with deps.engine.begin() as tx:
        store.lock(tx)
        store.add(tx, *generated)
    retire_signing_keys(deps)
    return generated[0]


def retire_signing_keys(deps: Deps) -> list[str]:
    """Stop accepting keys that no valid token can have been signed with; their ids."""
    lifetime = timedelta(seconds=deps.signer.lifetime_s)
    with deps.engine.begin() as tx:
        store.lock(tx)
        retired = [key.kid for key in model.no_longer_needed(store.accepted(tx), store.now(tx), lifetime)]
        store.retire(tx, retired)
    return retired


def reseal_signing_keys(deps: Deps) -> model.Resealed:
    """Put every signing key under the current key-encryption key. One that does not open stops none of the others."""
    count, unopened = 0, []
    with deps.engine.begin() as tx:
        store.lock(tx)
        for key in store.ever(tx):
            try:
                sealed = deps.signer.reseal(key.kid, key.sealed_key)
            except BrokenSeal:
                unopened.append(key.kid)
                continue
            if sealed:
                store.reseal(tx, key.kid, sealed)
                count += 1
    return model.Resealed(count, tuple(unopened))


def _signing_key(deps: Deps) -> model.SigningKey:
    with db.reading(deps.engine) as tx:
        found = model.signing_now(store.accepted(tx), store.now(tx))
    return found or _first_keys(deps)[0]


def _first_keys(deps: Deps) -> Sequence[model.SigningKey]:
    """Make the first key, unless another process has just done that."""
    generated = deps.signer.generate()  # slow: no transaction is open meanwhile, which Postgres would end
    with deps.engine.begin() as tx:
        store.lock(tx)
        if not store.accepted(tx):
            store.add(tx, *generated)
        return store.accepted(tx)
