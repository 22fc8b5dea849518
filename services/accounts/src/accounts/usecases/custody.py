"""Bringing the vault in line with the credentials.

Nothing here remembers how far it came: each step looks at what is so, and may be done again after a crash anywhere.
"""

from uuid import UUID

from accounts import model, store
from accounts.usecases.credentials import REQUEST
from accounts.usecases.deps import Deps
from chassis import crashpoints
from vault import Envelope, Place

REWRAP_BATCH = 100


def settle_credential(deps: Deps, credential_id: UUID) -> None:
    """Move the newest secret into the vault, and destroy what no longer belongs there."""
    custody = _custody(deps, credential_id)
    if custody and not custody.deleted and _move(deps, custody):
        custody = _custody(deps, credential_id)
    if custody and custody.outdated():
        _destroy(deps, custody)


def give_up(deps: Deps, credential_id: UUID) -> None:
    """Show the credential as invalid: its secret could not be kept."""
    with deps.engine.begin() as tx:
        store.mark_invalid(tx, credential_id)


def rewrap(deps: Deps) -> int:
    """Put every sealed secret under the current key-encryption key; how many were under another."""
    total = 0
    for purpose, table in store.sealed_tables().items():

        def renew(place: Place, envelope: Envelope, purpose: str = purpose) -> Envelope:
            return deps.keyring.rewrap(purpose, place, envelope)

        while True:
            with deps.engine.begin() as tx:
                done = store.rewrap_batch(tx, table, deps.keyring.current_id, renew, REWRAP_BATCH)
            total += done
            if not done:
                break
    return total


def _move(deps: Deps, custody: model.Custody) -> bool:
    """Whether there was a secret to move."""
    with deps.engine.connect() as tx:
        sealed = store.find_sealed(tx, custody.credential_id, custody.version)
    if sealed is None:
        return False
    place = _place(custody, custody.version)
    deps.vault.put(place, deps.keyring.open(REQUEST, place, sealed))
    crashpoints.reach("accounts.after_put")
    with deps.engine.begin() as tx:
        store.record_put(tx, custody.credential_id, custody.version)
    crashpoints.reach("accounts.after_record")
    return True


def _destroy(deps: Deps, custody: model.Custody) -> None:
    versions = custody.outdated()
    for version in versions:
        deps.vault.destroy(_place(custody, version))
    crashpoints.reach("accounts.after_destroy")
    with deps.engine.begin() as tx:
        store.record_destroyed(tx, custody.credential_id, versions[-1])


def _custody(deps: Deps, credential_id: UUID) -> model.Custody | None:
    with deps.engine.connect() as tx:
        return store.custody(tx, credential_id)


def _place(custody: model.Custody, version: int) -> Place:
    return Place(custody.organization_id, custody.account_id, custody.credential_id, version)
