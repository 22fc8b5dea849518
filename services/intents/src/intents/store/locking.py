"""Who must decide and write without anybody in between: intents first and by id, then the account, as everywhere."""

from collections.abc import Iterable
from uuid import UUID

from intents import model
from intents.store.account_head import take_sequences
from intents.store.direct import Direct, Statement

_LOCK_ACCOUNT = Statement(
    "intents_lock_account",
    ("uuid", "uuid"),
    take_sequences("SELECT $1 AS account_id, $2 AS organization_id, 0 AS sequences"),
)
_LOCK_INTENTS = Statement(
    "intents_lock_intents",
    ("uuid", "uuid[]"),
    "SELECT 1 FROM intents.intent WHERE account_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
)
# For a moment and shared, so that of two who look neither seems to hold what nobody holds.
_HELD_ACCOUNTS = Statement(
    "intents_held_accounts",
    ("uuid[]",),
    """
    WITH free AS (SELECT account_id FROM intents.account_head WHERE account_id = ANY($1) FOR SHARE SKIP LOCKED)
    SELECT account_id FROM intents.account_head WHERE account_id = ANY($1) EXCEPT SELECT account_id FROM free
    """,
)


def lock_intents(direct: Direct, account_id: UUID, intent_ids: Iterable[UUID]) -> None:
    """Hold up the intents' other writers until this transaction ends."""
    references = [str(intent_id) for intent_id in intent_ids]
    if references:
        direct.write(_LOCK_INTENTS, (str(account_id), references))


def held_accounts(direct: Direct, account_ids: Iterable[UUID]) -> set[UUID]:
    """Those of the accounts that somebody is writing to at this moment."""
    rows = direct.read(_HELD_ACCOUNTS, ([str(account_id) for account_id in account_ids],))
    return {account_id for (account_id,) in rows}


def lock_account(direct: Direct, account: model.Account) -> None:
    """Hold up all writers of the account until this transaction ends."""
    direct.write(_LOCK_ACCOUNT, (str(account.id), str(account.organization_id)))
