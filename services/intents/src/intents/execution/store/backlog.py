"""What is due and waits for an executor."""

from sqlalchemy import Connection, text

from intents.execution.model.backlog import WaitingAccount
from intents.execution.store.expressions import IS_DUE, QUEUES_WITH_WORK

MOST_OF_A_QUEUE = 5_000  # of what has been due longest: a longer queue costs no more to measure

# A command that an executor has put back is not due before its time, whatever the reason; one that may have been sent
# is not new.
_WAITING = text(f"""
    WITH RECURSIVE queue AS ({QUEUES_WITH_WORK}), waiting AS MATERIALIZED (
        SELECT first.account_id, min(first.next_attempt_at) AS since
        FROM queue CROSS JOIN LATERAL (
            SELECT i.account_id, i.next_attempt_at, i.submit_started_at FROM intents.intent i
            WHERE i.lane = queue.lane AND i.organization_id = queue.organization_id AND {IS_DUE}
            ORDER BY i.next_attempt_at LIMIT :most
        ) AS first WHERE first.submit_started_at IS NULL GROUP BY first.account_id
    )
    SELECT a.organization_id, a.id AS account_id, a.broker, a.environment,
           CAST(extract(epoch FROM now() - waiting.since) AS double precision) AS age_seconds,
           a.id IN (SELECT account_id FROM intents.intent WHERE lease_until > now()) AS in_flight
    FROM waiting JOIN accounts_api.account a ON a.id = waiting.account_id
""")  # noqa: S608 - only our own words

_ANYTHING = text("SELECT EXISTS (SELECT FROM intents.intent WHERE open_actions > 0)")


def waiting_accounts(tx: Connection) -> list[WaitingAccount]:
    """The accounts with something waiting, each with the age of the oldest."""
    return [WaitingAccount(*row) for row in tx.execute(_WAITING, {"most": MOST_OF_A_QUEUE})]


def anything_waits(tx: Connection) -> bool:
    """Whether a command is open at all."""
    return bool(tx.execute(_ANYTHING).scalar_one())
