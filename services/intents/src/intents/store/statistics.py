"""Counts kept in buckets, and the end of the log that is not in them yet: together they are exact at any moment."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from intents import model

ROLLED_AT_ONCE = 20_000
KEPT = {"minute": "2 days", "hour": "62 days"}
MOST_TAGS = 100
"""Of one bucket: a caller that makes up a new tag for every order must not make its statistics slow."""

_COUNTS = text("""
    SELECT kind, key, sum(amount)::bigint AS amount FROM (
        SELECT kind, key, amount FROM intents.statistic
        WHERE account_id = :account_id AND width = :width AND bucket >= :since
        UNION ALL
        SELECT kind, key, amount FROM intents.tally
        WHERE account_id = :account_id AND moment >= :since AND sequence > :counted
    ) AS counted GROUP BY kind, key
""")
_COUNTED = text("SELECT last_sequence FROM intents.statistic_head WHERE account_id = :account_id")
_TO_ROLL_UP = text("""
    SELECT head.account_id FROM intents.account_head head
    LEFT JOIN intents.statistic_head done ON done.account_id = head.account_id
    WHERE head.last_sequence >= coalesce(done.last_sequence, 0) + :least LIMIT :limit
""")
_BEGIN = text(
    "INSERT INTO intents.statistic_head (account_id, last_sequence) VALUES (:account_id, 0) ON CONFLICT DO NOTHING"
)
_LOCK = text("""
    SELECT done.last_sequence AS counted, head.last_sequence FROM intents.statistic_head done
    JOIN intents.account_head head ON head.account_id = done.account_id
    WHERE done.account_id = :account_id FOR UPDATE OF done
""")
_ROLL_UP = text("""
    INSERT INTO intents.statistic AS counted (account_id, width, bucket, kind, key, amount)
    SELECT account_id, width, bucket, kind, key, amount FROM (
        SELECT account_id, width, date_trunc(width, moment, 'UTC') AS bucket, kind, key, sum(amount) AS amount,
               row_number() OVER (PARTITION BY width, date_trunc(width, moment, 'UTC'), kind
                                  ORDER BY sum(amount) DESC, key) AS place
        FROM intents.tally, unnest(ARRAY['minute', 'hour', 'day']) AS width
        WHERE account_id = :account_id AND sequence > :after AND sequence <= :until
        GROUP BY account_id, width, bucket, kind, key HAVING sum(amount) <> 0
    ) AS portion
    WHERE kind <> 'tag' OR place <= :most_tags - (
              SELECT count(*) FROM intents.statistic kept
              WHERE kept.account_id = portion.account_id AND kept.width = portion.width
                AND kept.bucket = portion.bucket AND kept.kind = 'tag')
       OR EXISTS (SELECT FROM intents.statistic kept
                  WHERE kept.account_id = portion.account_id AND kept.width = portion.width
                    AND kept.bucket = portion.bucket AND kept.kind = 'tag' AND kept.key = portion.key)
    ORDER BY width, bucket, kind, key
    ON CONFLICT (account_id, width, bucket, kind, key) DO UPDATE SET amount = counted.amount + excluded.amount
""")
_DONE = text("UPDATE intents.statistic_head SET last_sequence = :until WHERE account_id = :account_id")
_PRUNE = text("""
    DELETE FROM intents.statistic
    WHERE account_id = :account_id AND width = :width AND bucket < now() - CAST(:kept AS interval)
""")


def counts(tx: Connection, account_id: UUID, width: str, since: datetime | None) -> list[model.Count]:
    """Needs a transaction in which nothing moves (REPEATABLE READ): what is counted and what is not must fit together.

    How far the buckets go is queried first, because the planner must know that little of the log is left.
    """
    counted = tx.execute(_COUNTED, {"account_id": account_id}).scalar_one_or_none() or 0
    values = {"account_id": account_id, "width": width, "since": since or "-infinity", "counted": counted}
    return [model.Count(row.kind, row.key, row.amount) for row in tx.execute(_COUNTS, values)]


def accounts_to_roll_up(tx: Connection, least: int, limit: int = 500) -> list[UUID]:
    """Accounts with so many entries in the log that the buckets do not have yet."""
    return list(tx.execute(_TO_ROLL_UP, {"least": least, "limit": limit}).scalars())


def roll_up(tx: Connection, account_id: UUID) -> int:
    """Add the next part of the account's log to its buckets; how many sequences that was."""
    tx.execute(_BEGIN, {"account_id": account_id})
    found = tx.execute(_LOCK, {"account_id": account_id}).one()
    after = found.counted
    until = min(found.last_sequence, after + ROLLED_AT_ONCE)
    if until > after:
        tx.execute(_ROLL_UP, {"account_id": account_id, "after": after, "until": until, "most_tags": MOST_TAGS})
        tx.execute(_DONE, {"account_id": account_id, "until": until})
        for width, kept in KEPT.items():
            tx.execute(_PRUNE, {"account_id": account_id, "width": width, "kept": kept})
    return int(until - after)


def now(tx: Connection) -> datetime:
    moment: datetime = tx.execute(text("SELECT clock_timestamp()")).scalar_one()
    return moment


_FORGET = text("""
    DELETE FROM intents.idempotency WHERE ctid IN (
        SELECT ctid FROM intents.idempotency WHERE created_at < now() - interval '24 hours' LIMIT 5000)
""")


def forget_old_keys(tx: Connection) -> int:
    """Delete idempotency keys whose time is over; a key used again before that replaces its row by itself."""
    return tx.execute(_FORGET).rowcount
