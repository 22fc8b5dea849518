"""Row locks of those who must read, decide and write undisturbed: intents by id, then the account, as everywhere."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from intents.store.account_head import take_sequences
from intents.store.connections import OpenTransaction
from intents.store.statement import Statement, Transaction

_LOCK_ACCOUNT = Statement(
    "intents_lock_account",
    ("uuid", "uuid"),
    take_sequences("SELECT $1 AS account_id, $2 AS organization_id, 0 AS sequences"),
)
_LOCK_ACCOUNTS = Statement(
    "intents_lock_accounts",
    ("uuid[]", "uuid[]"),
    take_sequences(
        "SELECT account_id, organization_id, 0 AS sequences FROM unnest($1, $2) given (account_id, organization_id)"
    ),
)
_LOCK_INTENTS = Statement(
    "intents_lock_intents",
    ("uuid", "uuid[]"),
    "SELECT 1 FROM intents.intent WHERE account_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
)
# A shared lock for a moment, so that two that check at once do not take each other for a writer.
_LOCKED_ACCOUNTS = Statement(
    "intents_locked_accounts",
    ("uuid[]",),
    """
    WITH free AS (SELECT account_id FROM intents.account_head WHERE account_id = ANY($1) FOR SHARE SKIP LOCKED)
    SELECT account_id FROM intents.account_head WHERE account_id = ANY($1) EXCEPT SELECT account_id FROM free
    """,
)


def lock_intents(tx: OpenTransaction, account_id: UUID, intent_ids: Iterable[UUID]) -> None:
    """Block the intents' other writers until the transaction ends."""
    references = [str(intent_id) for intent_id in intent_ids]
    if references:
        tx.write(_LOCK_INTENTS, (str(account_id), references))


def lock_account(tx: OpenTransaction, account_id: UUID, organization_id: UUID | None) -> None:
    """Block all other writers of the account until the transaction ends. The database knows whose account it is."""
    tx.write(_LOCK_ACCOUNT, (str(account_id), organization_id and str(organization_id)))


def lock_accounts(tx: OpenTransaction, accounts: Mapping[UUID, UUID]) -> dict[UUID, int]:
    """Block all other writers of the accounts, given with their organizations, until the transaction ends.

    Returns where the log of each ends, 0 if it has none yet.
    """
    values = ([str(account_id) for account_id in accounts], [str(of) for of in accounts.values()])
    return {row.account_id: row.last_sequence for row in tx.write(_LOCK_ACCOUNTS, values)}


def locked_accounts(tx: Transaction, account_ids: Iterable[UUID]) -> set[UUID]:
    """Those of the accounts that another transaction is writing to at this moment."""
    rows = tx.read(_LOCKED_ACCOUNTS, ([str(account_id) for account_id in account_ids],))
    return {row.account_id for row in rows}
