"""Bringing the vault in line with the credentials.

No progress is stored: each step reads the present state, and may be repeated after a crash anywhere.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from accounts import model, store
from accounts.usecases.credentials import REQUEST
from accounts.usecases.deps import Deps
from chassis import crashpoints, db
from chassis.feed import FeedEvent
from credential_vault import Envelope, Refused, SecretPath

REWRAP_BATCH = 100


def settle_credential(deps: Deps, credential_id: UUID) -> None:
    """Move the newest secret into the vault, and destroy what no longer belongs there."""
    custody = _custody(deps, credential_id)
    if custody and not custody.deleted and _move(deps, custody):
        custody = _custody(deps, credential_id)
    if custody and custody.outdated():
        _destroy(deps, custody)


def give_up(tx: Connection, payload: Mapping[str, Any]) -> None:
    """Show the credential as invalid: its secret could not be kept."""
    store.mark_invalid(tx, UUID(payload["credential_id"]))


def apply_intents_event(tx: Connection, event: FeedEvent) -> None:
    """A broker accepted a credential, or refused it: then nobody may take it for usable until its secret is rotated, or
    a test that is requested finds it accepted."""
    if event.event_type == model.CREDENTIAL_VALID:
        store.mark_accepted(tx, UUID(event.payload["credential_id"]), event.payload["version"])
    if event.event_type == model.CREDENTIAL_INVALID:
        store.mark_refused(tx, UUID(event.payload["credential_id"]), event.payload["version"])
    if event.event_type == model.CREDENTIAL_TESTED:
        tested = UUID(event.payload["credential_id"]), UUID(event.payload["test_id"])
        store.end_test(tx, *tested, event.payload["outcome"])


def rewrap(deps: Deps) -> model.Rewrapped:
    """Put every sealed secret under the current key-encryption key. One that does not open stops none of the others."""
    total = 0
    while True:
        count, left = _rewrap_once(deps)
        total += count
        if not count:  # what was sealed meanwhile is found by the next round
            return model.Rewrapped(total, tuple(left))


def _rewrap_once(deps: Deps) -> tuple[int, list[model.Unopened]]:
    count, left = 0, []
    for purpose, table in store.sealed_tables().items():
        after: SecretPath | None = None
        while True:
            with deps.engine.begin() as tx:
                found = store.under_other_keys(tx, table, deps.keyring.current_id, after, REWRAP_BATCH)
                failures = [_renew(deps, tx, purpose, path, envelope) for path, envelope in found]
            if not found:
                break
            after = found[-1][0]
            unopened = [failure for failure in failures if failure]
            count += len(found) - len(unopened)
            left += unopened
    return count, left


def _renew(deps: Deps, tx: Connection, purpose: str, path: SecretPath, envelope: Envelope) -> model.Unopened | None:
    try:
        renewed = deps.keyring.rewrap(purpose, path, envelope)
    except Refused as error:
        return model.Unopened(path.credential_id, path.version, type(error).__name__)
    store.replace_envelope(tx, store.sealed_tables()[purpose], path, renewed)
    return None


def _move(deps: Deps, custody: model.Custody) -> bool:
    """Whether there was a secret to move."""
    with db.reading(deps.engine) as tx:
        sealed = store.find_sealed(tx, custody.credential_id, custody.version)
    if sealed is None:
        return False
    path = _secret_path(custody, custody.version)
    deps.vault.put(path, deps.keyring.open(REQUEST, path, sealed))
    crashpoints.reach("accounts.after_put")
    with deps.engine.begin() as tx:
        store.record_put(tx, custody.credential_id, custody.version)
    crashpoints.reach("accounts.after_record")
    return True


def _destroy(deps: Deps, custody: model.Custody) -> None:
    versions = custody.outdated()
    for version in versions:
        deps.vault.destroy(_secret_path(custody, version))
    crashpoints.reach("accounts.after_destroy")
    with deps.engine.begin() as tx:
        store.record_destroyed(tx, custody.credential_id, versions[-1])


def _custody(deps: Deps, credential_id: UUID) -> model.Custody | None:
    with db.reading(deps.engine) as tx:
        return store.custody(tx, credential_id)


def _secret_path(custody: model.Custody, version: int) -> SecretPath:
    return SecretPath(custody.organization_id, custody.account_id, custody.credential_id, version)
