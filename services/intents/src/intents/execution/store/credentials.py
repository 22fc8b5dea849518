"""Credentials of accounts, and which account at the broker each of them opens."""

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

BEST_FIRST = "status = 'active' DESC, status = 'pending' DESC, created_at DESC"
_COLUMNS = "id, account_id, organization_id, status, vault_version, key_id, wrapped_key, ciphertext"
_BEST = text(f"""
    SELECT {_COLUMNS} FROM accounts_api.credential WHERE account_id = :account_id ORDER BY {BEST_FIRST} LIMIT 1
""")  # noqa: S608 - a constant
_BY_ID = text(f"""
    SELECT {_COLUMNS} FROM accounts_api.credential WHERE account_id = :account_id AND id::text = :credential_id
""")  # noqa: S608 - a constant
_UNTESTED = text(f"""
    SELECT {_COLUMNS} FROM accounts_api.credential
    WHERE account_id = :account_id AND status = 'pending' AND vault_version = version ORDER BY created_at
""")  # noqa: S608 - a constant
_LOGIN = text("""
    SELECT broker_account FROM intents.broker_login WHERE account_id = :account_id AND credential = :reference
""")
_RECORD_LOGIN = text("""
    INSERT INTO intents.broker_login (account_id, credential, broker_account)
    VALUES (:account_id, :reference, :broker_account) ON CONFLICT DO NOTHING
""")
_RECORD_REFUSED = text("""
    INSERT INTO intents.broker_account AS existing (account_id, refused_credential) VALUES (:account_id, :reference)
    ON CONFLICT (account_id) DO UPDATE SET refused_credential = excluded.refused_credential
        WHERE existing.refused_credential IS DISTINCT FROM excluded.refused_credential
    RETURNING 1
""")


def best_credential(tx: Connection, account_id: UUID) -> Any | None:
    """The row of the credential that is used for what nobody has sent yet."""
    return tx.execute(_BEST, {"account_id": account_id}).one_or_none()


def credential_by_id(tx: Connection, account_id: UUID, credential_id: str) -> Any | None:
    return tx.execute(_BY_ID, {"account_id": account_id, "credential_id": credential_id}).one_or_none()


def untested_credentials(tx: Connection, account_id: UUID) -> list[Any]:
    """Rows of credentials whose secret is in the vault and which no broker has accepted or refused yet."""
    return list(tx.execute(_UNTESTED, {"account_id": account_id}))


def recorded_login(tx: Connection, account_id: UUID, reference: str) -> str | None:
    """The account at the broker that the credential opens, if that is recorded."""
    found: str | None = tx.execute(_LOGIN, {"account_id": account_id, "reference": reference}).scalar()
    return found


def record_login(tx: Connection, account_id: UUID, reference: str, broker_account: str) -> None:
    tx.execute(_RECORD_LOGIN, {"account_id": account_id, "reference": reference, "broker_account": broker_account})


def record_refused(tx: Connection, account_id: UUID, reference: str) -> bool:
    """Whether it is new that the broker refuses this version of the account's credential."""
    return tx.execute(_RECORD_REFUSED, {"account_id": account_id, "reference": reference}).first() is not None
