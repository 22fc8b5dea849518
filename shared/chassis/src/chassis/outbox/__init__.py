"""The transactional outbox: what a use case publishes, written in the use case's own transaction.

    with deps.outbox.begin() as tx:
        store.insert_account(tx, account)
        deps.outbox.append(tx, Event("account.created", payload, ordering_key=str(account.id)))

Every service has the same tables in its own schema (`ddl`); `relay` delivers them. A row is pending, processing,
completed or failed; only the row's own fault makes it failed.
"""

from chassis.outbox.store import CLAIM_SECONDS, LAST_ID, Claim, Event, FailedRow, Outbox, Row

__all__ = ["CLAIM_SECONDS", "LAST_ID", "Claim", "Event", "FailedRow", "Outbox", "Row"]
