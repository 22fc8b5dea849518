"""Broker credentials: requests seal the secret, the worker moves it into the vault."""

from uuid import UUID, uuid4

from sqlalchemy import Connection

import tip_brokers
from accounts import model, store
from accounts.usecases.accounts import append_credential_event, revoke, visible
from accounts.usecases.deps import Deps
from chassis import db
from chassis.principals import Principal
from credential_vault import Secret, SecretPath

REQUEST = "request"  # a secret sealed for this purpose does not open as an object of the vault


def add_credential(deps: Deps, principal: Principal, account_id: UUID, label: str, secret: Secret) -> model.Credential:
    credential_id = uuid4()
    with deps.outbox.begin() as tx:
        account = visible(tx, principal, account_id, lock=True)
        fingerprint = deps.fingerprint(account.organization_id, secret)
        store.insert_credential(tx, credential_id, account, label, fingerprint)
        model.check_limit(store.count_credentials(tx, account_id), deps.most_credentials)
        _seal(deps, tx, account, credential_id, 1, secret)
        append_credential_event(deps.outbox, tx, model.CREDENTIAL_CREATED, account, credential_id, 1)
        return _found(tx, account_id, credential_id)


def read_credential(deps: Deps, principal: Principal, account_id: UUID, credential_id: UUID) -> model.Credential:
    with db.reading(deps.engine) as tx:
        visible(tx, principal, account_id)
        return _found(tx, account_id, credential_id)


def list_credentials(
    deps: Deps, principal: Principal, account_id: UUID, after: store.Position | None, limit: int
) -> list[model.Credential]:
    with db.reading(deps.engine) as tx:
        visible(tx, principal, account_id)
        return store.list_credentials(tx, account_id, after, limit)


def rotate_secret(
    deps: Deps, principal: Principal, account_id: UUID, credential_id: UUID, secret: Secret, expected: int | None
) -> model.Credential:
    """Take a new secret. The one in the vault stays in use until the worker has put the new one beside it."""
    with deps.outbox.begin() as tx:
        account = visible(tx, principal, account_id, lock=True)
        credential = _found(tx, account_id, credential_id, lock=True)
        model.check_version(expected, credential.version)
        store.renew_credential(tx, credential_id, deps.fingerprint(account.organization_id, secret))
        _seal(deps, tx, account, credential_id, credential.version + 1, secret)
        append_credential_event(
            deps.outbox, tx, model.CREDENTIAL_UPDATED, account, credential_id, credential.version + 1
        )
        return _found(tx, account_id, credential_id)


def request_test(deps: Deps, principal: Principal, account_id: UUID, credential_id: UUID) -> model.Credential:
    """Have the broker tried with the secret in the vault. The credential stays what it is until the broker answers.

    One that is new or rotated is tested already. While a test is awaited there is no other, but it is published again.
    """
    with deps.outbox.begin() as tx:
        account = visible(tx, principal, account_id, lock=True)
        credential = _found(tx, account_id, credential_id, lock=True)
        tip_brokers.find(account.broker)
        if credential.status == "pending":
            return credential
        if credential.test_status != "pending":
            store.begin_test(tx, credential_id, uuid4())
            credential = _found(tx, account_id, credential_id)
        if credential.test_status == "pending":
            version = credential.version
            append_credential_event(deps.outbox, tx, model.CREDENTIAL_UPDATED, account, credential_id, version)
        return credential


def delete_credential(
    deps: Deps, principal: Principal, account_id: UUID, credential_id: UUID, expected: int | None
) -> None:
    with deps.outbox.begin() as tx:
        account = visible(tx, principal, account_id, lock=True)
        credential = _found(tx, account_id, credential_id, lock=True)
        model.check_version(expected, credential.version)
        revoke(deps.outbox, tx, account, credential_id)


def _seal(
    deps: Deps, tx: Connection, account: model.Account, credential_id: UUID, version: int, secret: Secret
) -> None:
    path = SecretPath(account.organization_id, account.id, credential_id, version)
    store.put_sealed(tx, path, deps.keyring.seal(REQUEST, path, secret))


def _found(tx: Connection, account_id: UUID, credential_id: UUID, *, lock: bool = False) -> model.Credential:
    credential = store.find_credential(tx, account_id, credential_id, lock=lock)
    if credential is None:
        raise model.NotFound
    return credential
