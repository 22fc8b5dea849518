"""Credentials of accounts, and which account at the broker each of them opens."""

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from intents.execution.model.commands import DERIVED
from intents.store.account_head import LOCK_EXISTING

BEST_FIRST = "status = 'active' DESC, status = 'pending' DESC, created_at DESC"
_COLUMNS = "id, account_id, organization_id, status, vault_version, key_id, wrapped_key, ciphertext"
_BEST = text(f"""
    SELECT {_COLUMNS} FROM accounts_api.credential WHERE account_id = :account_id ORDER BY {BEST_FIRST} LIMIT 1
""")  # noqa: S608 - a constant
_BY_ID = text(f"""
    SELECT {_COLUMNS} FROM accounts_api.credential WHERE account_id = :account_id AND id::text = :credential_id
""")  # noqa: S608 - a constant
_UNTESTED = text(f"""
    SELECT {_COLUMNS}, test_id FROM accounts_api.credential
    WHERE account_id = :account_id AND (status = 'pending' OR test_id IS NOT NULL) AND vault_version = version
    ORDER BY created_at
""")  # noqa: S608 - a constant
_LOGIN = text("""
    SELECT broker_account FROM intents.broker_login WHERE account_id = :account_id AND credential = :reference
""")
_RECORD_LOGIN = text("""
    INSERT INTO intents.broker_login (account_id, credential, broker_account)
    VALUES (:account_id, :reference, :broker_account) ON CONFLICT DO NOTHING
""")
# Once its broker has accepted it, the credential is what it will be when accounts has received that: active.
_IS_BEST = f"""
    :reference = coalesce((
        SELECT concat(id, ':', vault_version) FROM accounts_api.credential WHERE account_id = :account_id
        ORDER BY status = 'active' OR concat(id, ':', vault_version) = :reference DESC,
                 status = 'pending' AND concat(id, ':', vault_version) <> :reference DESC,
                 created_at DESC LIMIT 1), '{DERIVED}')
"""  # noqa: S608 - a constant
_IS_THE_BEST = text(f"SELECT {_IS_BEST}")
_LOGINS_OF = text("""
    SELECT l.credential FROM intents.broker_login l
    JOIN accounts_api.credential c ON c.account_id = l.account_id AND concat(c.id, ':', c.vault_version) = l.credential
    WHERE l.account_id = :account_id AND l.broker_account = :broker_account ORDER BY c.created_at DESC
""")
_HELD = text("SELECT held_account FROM intents.broker_account WHERE account_id = :account_id FOR UPDATE")
_HOLD = text(f"""
    INSERT INTO intents.broker_account AS k (account_id, held_account) SELECT :account_id, :held_account
    WHERE {_IS_BEST}
    ON CONFLICT (account_id) DO UPDATE SET held_account = excluded.held_account,
        awaits_reading = k.held_account IS NOT NULL,
        reconciled_at = CASE WHEN k.held_account IS NULL THEN k.reconciled_at END,
        next_read_at = CASE WHEN k.held_account IS NULL OR k.next_read_at IS NULL THEN k.next_read_at
                            ELSE least(k.next_read_at, now()) END
    RETURNING awaits_reading
""")
_DISCARD_POSITIONS = text("""
    UPDATE intents.position SET quantity = 0, average_entry_price = NULL, market_value = NULL,
        unrealized_profit = NULL, unrecorded_fills = '{}', updated_at = clock_timestamp(), reconciled_at = NULL
    WHERE account_id = :account_id AND (quantity <> 0 OR unrecorded_fills <> '{}')
""")
_DISCARD_BALANCE = text("DELETE FROM intents.balance WHERE account_id = :account_id")
_FORGET_REFUSED = text("""
    UPDATE intents.broker_account SET refused_credential = NULL
    WHERE account_id = :account_id AND refused_credential = :reference
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


def is_best(tx: Connection, account_id: UUID, reference: str) -> bool:
    """Whether it is used for what nobody has sent yet, now that the broker has accepted it."""
    return bool(tx.execute(_IS_THE_BEST, {"account_id": account_id, "reference": reference}).scalar())


def logins_of(tx: Connection, account_id: UUID, broker_account: str) -> list[str]:
    """Credentials that opened this account at the broker, in the version that they have now."""
    return list(tx.execute(_LOGINS_OF, {"account_id": account_id, "broker_account": broker_account}).scalars())


def untested_credentials(tx: Connection, account_id: UUID) -> list[Any]:
    """Rows of credentials whose secret is in the vault and which no broker has accepted or refused yet, or is to be
    tried with again: those have a `test_id`."""
    return list(tx.execute(_UNTESTED, {"account_id": account_id}))


def recorded_login(tx: Connection, account_id: UUID, reference: str) -> str | None:
    """The account at the broker that the credential opens, if that is recorded."""
    found: str | None = tx.execute(_LOGIN, {"account_id": account_id, "reference": reference}).scalar()
    return found


def record_login(tx: Connection, account_id: UUID, reference: str, broker_account: str) -> None:
    tx.execute(_RECORD_LOGIN, {"account_id": account_id, "reference": reference, "broker_account": broker_account})


def hold_account(tx: Connection, account_id: UUID, reference: str, broker_account: str) -> bool:
    """Whether the holdings that count are of this account at the broker, which the credential opens.

    They are from here on if the credential is the account's best; what was held in another one is discarded.
    """
    values = {"account_id": account_id, "reference": reference, "held_account": broker_account}
    tx.execute(LOCK_EXISTING, values)  # heads before positions, as everywhere
    if tx.execute(_HELD, values).scalar() == broker_account:
        return True
    held = tx.execute(_HOLD, values).one_or_none()
    if held is not None and held.awaits_reading:
        tx.execute(_DISCARD_POSITIONS, values)
        tx.execute(_DISCARD_BALANCE, values)
    return held is not None


def forget_refused(tx: Connection, account_id: UUID, reference: str) -> None:
    """The broker accepts the credential again: should it refuse it once more, that is new."""
    tx.execute(_FORGET_REFUSED, {"account_id": account_id, "reference": reference})


def record_refused(tx: Connection, account_id: UUID, reference: str) -> bool:
    """Whether it is new that the broker refuses this version of the account's credential."""
    return tx.execute(_RECORD_REFUSED, {"account_id": account_id, "reference": reference}).first() is not None
