"""The head of an account's log: the only place that hands out sequence numbers and extends the chain of hashes."""

from sqlalchemy import text

from intents.model import chain

GENESIS = f"'\\x{chain.GENESIS.hex()}'::bytea"
LOCK_EXISTING = text("SELECT 1 FROM intents.account_head WHERE account_id = :account_id FOR UPDATE")


def take_sequences(source: str) -> str:
    """SQL that takes `sequences` numbers for each (account_id, organization_id, sequences) of `source`.

    It returns the last number of each. Events are inserted in the order of their numbers: a trigger extends the chain
    by each, in the order they come. Taking zero numbers only locks the head. Heads are locked in the order of
    accounts, so that two writers to many accounts never deadlock. The database fills in an organization that is NULL.
    """
    return f"""
    INSERT INTO intents.account_head AS head (account_id, organization_id, last_sequence, last_hash, previous_hash)
    SELECT account_id, organization_id, sequences, {GENESIS}, {GENESIS} FROM ({source}) taken ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + excluded.last_sequence
    RETURNING account_id, organization_id, last_sequence
    """  # noqa: S608 - only our own words


def extend_chain(admitted: str) -> str:
    """SQL that takes one number for each row of the CTE `admitted`, which names no account twice, and seals it.

    The head blocks the other writers of its account until the transaction ends: lock it late, in one statement.
    """
    return f"""
    INSERT INTO intents.account_head AS head (account_id, organization_id, last_sequence, last_hash, previous_hash)
    SELECT account_id, organization_id, 1, sha256({GENESIS} || int8send(1) || digest), {GENESIS}
    FROM {admitted} ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET
        last_sequence = head.last_sequence + 1, previous_hash = head.last_hash,
        last_hash = sha256(head.last_hash || int8send(head.last_sequence + 1) || (
            SELECT digest FROM {admitted} WHERE {admitted}.account_id = head.account_id))
    RETURNING account_id, last_sequence, previous_hash, last_hash
    """  # noqa: S608 - only our own words
