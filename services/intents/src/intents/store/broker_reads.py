"""Requests to read an account at its broker: the reconciler, which has the credentials, does it."""

from uuid import UUID

from sqlalchemy import Connection, text

READS = "reads"
"""The topic of the NOTIFY that wakes the reconcilers."""
SHORTEST_SECONDS = 1.0  # from one read of an account to the next that is requested

_REQUEST = text("SELECT intents.request_read(:organization_id, :account_id, make_interval(secs => :shortest))")


def request_read(
    tx: Connection, organization_id: UUID, account_id: UUID, shortest_seconds: float = SHORTEST_SECONDS
) -> None:
    """Let the account be read so long after the last time, or now; the reconcilers are woken by the commit."""
    values = {"account_id": account_id, "organization_id": organization_id, "shortest": shortest_seconds}
    tx.execute(_REQUEST, values)
