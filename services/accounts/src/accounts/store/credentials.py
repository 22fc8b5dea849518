"""SQL on broker credentials and on where their secrets are."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, case, delete, func, insert, select, tuple_, update

from accounts import model
from accounts.store.accounts import Position
from accounts.store.tables import account, credential, sealed_secret
from credential_vault import Envelope, SecretPath

_SHOWN = (
    credential.c.id,
    credential.c.account_id,
    account.c.organization_id,
    account.c.broker,
    credential.c.label,
    credential.c.status,
    credential.c.fingerprint,
    credential.c.created_at,
    credential.c.updated_at,
    credential.c.version,
    credential.c.test_status,
    credential.c.tested_at,
)
_NO_TEST = {"test_id": None, "test_status": None, "tested_at": None}


def insert_credential(tx: Connection, credential_id: UUID, of: model.Account, label: str, fingerprint: str) -> None:
    values = {"id": credential_id, "account_id": of.id, "organization_id": of.organization_id}
    tx.execute(insert(credential).values(**values, label=label, fingerprint=fingerprint))


def count_credentials(tx: Connection, account_id: UUID) -> int:
    alive = (credential.c.account_id == account_id) & credential.c.deleted_at.is_(None)
    return tx.execute(select(func.count()).select_from(credential).where(alive)).scalar_one()


def find_credential(
    tx: Connection, account_id: UUID, credential_id: UUID, *, lock: bool = False
) -> model.Credential | None:
    wanted = _alive().where(credential.c.id == credential_id, credential.c.account_id == account_id)
    row = tx.execute(wanted.with_for_update(of=credential) if lock else wanted).one_or_none()
    return model.Credential(**row._mapping) if row else None


def list_credentials(
    tx: Connection, account_id: UUID, after: Position | None, limit: int | None
) -> list[model.Credential]:
    """Oldest first; all of them without a limit."""
    wanted = _alive().where(credential.c.account_id == account_id)
    if after is not None:
        wanted = wanted.where(tuple_(credential.c.created_at, credential.c.id) > tuple_(*after))
    rows = tx.execute(wanted.order_by(credential.c.created_at, credential.c.id).limit(limit))
    return [model.Credential(**row._mapping) for row in rows]


def renew_credential(tx: Connection, credential_id: UUID, fingerprint: str) -> None:
    """A new version of the secret, which waits to be moved into the vault."""
    values = {"fingerprint": fingerprint, "status": "pending", "version": credential.c.version + 1, **_NO_TEST}
    tx.execute(update(credential).where(credential.c.id == credential_id).values(**values, updated_at=func.now()))


def begin_test(tx: Connection, credential_id: UUID, test_id: UUID) -> None:
    """The broker is to be tried with the secret in the vault; without one there the test has failed already."""
    in_vault = credential.c.vault_version == credential.c.version
    values = {
        "test_id": test_id,
        "test_status": case((in_vault, "pending"), else_="failed"),
        "tested_at": case((in_vault, None), else_=func.now()),
    }
    tx.execute(update(credential).where(credential.c.id == credential_id).values(values))


def end_test(tx: Connection, credential_id: UUID, test_id: UUID, outcome: str) -> None:
    """What came of the test; that of a test which is over, or of an earlier secret, changes nothing.

    A credential that the broker takes is active, whatever it was, and one that it refuses is not.
    """
    status = {"accepted": "active", "refused": "invalid"}.get(outcome, credential.c.status)
    values = {
        "test_status": outcome,
        "tested_at": func.now(),
        "status": status,
        "updated_at": case((credential.c.status != status, func.now()), else_=credential.c.updated_at),
    }
    awaited = (credential.c.test_id == test_id) & (credential.c.test_status == "pending")
    alive = (credential.c.id == credential_id) & credential.c.deleted_at.is_(None)
    tx.execute(update(credential).where(alive, awaited).values(values))


def revoke_credential(tx: Connection, credential_id: UUID) -> int:
    """No longer a credential from here on; its version now."""
    values = {"status": "revoked", "deleted_at": func.now(), "updated_at": func.now()}
    revoked = update(credential).where(credential.c.id == credential_id).values(values).returning(credential.c.version)
    version: int = tx.execute(revoked).scalar_one()
    forget_sealed(tx, credential_id, through=version)
    return version


def put_sealed(tx: Connection, path: SecretPath, envelope: Envelope) -> None:
    """Keep a request's secret for the worker, in place of any earlier one that the worker has not come to yet."""
    forget_sealed(tx, path.credential_id, through=path.version)
    values = {
        "credential_id": path.credential_id,
        "version": path.version,
        "organization_id": path.organization_id,
        "key_id": envelope.key_id,
        "wrapped_key": envelope.wrapped_key,
        "ciphertext": envelope.ciphertext,
    }
    tx.execute(insert(sealed_secret).values(values))


def find_sealed(tx: Connection, credential_id: UUID, version: int) -> Envelope | None:
    columns = (sealed_secret.c.key_id, sealed_secret.c.wrapped_key, sealed_secret.c.ciphertext)
    wanted = select(*columns).where(sealed_secret.c.credential_id == credential_id, sealed_secret.c.version == version)
    row = tx.execute(wanted).one_or_none()
    return Envelope(row.key_id, bytes(row.wrapped_key), bytes(row.ciphertext)) if row else None


def forget_sealed(tx: Connection, credential_id: UUID, *, through: int) -> None:
    tx.execute(
        delete(sealed_secret).where(sealed_secret.c.credential_id == credential_id, sealed_secret.c.version <= through)
    )


def custody(tx: Connection, credential_id: UUID) -> model.Custody | None:
    """Also of a deleted credential, whose secret has still to be destroyed."""
    wanted = select(
        credential.c.id,
        credential.c.account_id,
        account.c.organization_id,
        credential.c.version,
        credential.c.vault_version,
        credential.c.destroyed_through,
        credential.c.deleted_at.is_not(None),
    ).join_from(credential, account)
    row = tx.execute(wanted.where(credential.c.id == credential_id)).one_or_none()
    return model.Custody(*row) if row else None


def record_put(tx: Connection, credential_id: UUID, version: int) -> None:
    """This version is in the vault; it waits for its test, unless a newer one has come meanwhile, or a deletion."""
    newest = (credential.c.version == version) & credential.c.deleted_at.is_(None)
    values = {
        "vault_version": func.greatest(credential.c.vault_version, version),
        "status": case((newest, "pending"), else_=credential.c.status),
        "updated_at": func.now(),
    }
    tx.execute(update(credential).where(credential.c.id == credential_id).values(values))
    forget_sealed(tx, credential_id, through=version)


def record_destroyed(tx: Connection, credential_id: UUID, through: int) -> None:
    values = {"destroyed_through": func.greatest(credential.c.destroyed_through, through)}
    tx.execute(update(credential).where(credential.c.id == credential_id).values(values))


def mark_invalid(tx: Connection, credential_id: UUID) -> None:
    waiting = (credential.c.id == credential_id) & (credential.c.status == "pending")
    tx.execute(update(credential).where(waiting).values(status="invalid", updated_at=func.now()))


def mark_accepted(tx: Connection, credential_id: UUID, version: int) -> None:
    """The broker accepts this version of the secret; a later one is still to be tested."""
    _settle_test(tx, credential_id, version, ("pending",), "active")


def mark_refused(tx: Connection, credential_id: UUID, version: int) -> None:
    """The broker refuses this version of the secret; a later one is not known to be refused."""
    _settle_test(tx, credential_id, version, ("pending", "active"), "invalid")


def _settle_test(tx: Connection, credential_id: UUID, version: int, before: Sequence[str], status: str) -> None:
    tested = (credential.c.version == version) & (credential.c.vault_version == version)
    changed = update(credential).where(credential.c.id == credential_id, tested, credential.c.status.in_(before))
    tx.execute(changed.values(status=status, updated_at=func.now()))


def _alive() -> Select[Any]:
    return select(*_SHOWN).join_from(credential, account).where(credential.c.deleted_at.is_(None))
