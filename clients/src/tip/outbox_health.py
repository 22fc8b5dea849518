"""`tip outbox health`: what the platform reports of the accounts outbox."""

from typing import TYPE_CHECKING

import click

from tip.moments import age_at
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.accounts import OutboxEntry, OutboxHealth

TITLES = ("STATUS", "EVENT TYPE", "COUNT", "OLDEST", "ATTEMPTS", "OLDEST CLAIM")
NUMBERS = ("COUNT", "ATTEMPTS")


@click.command()
@with_session
def health(session: Session) -> None:
    """Report how the accounts outbox is doing, by status and event type.

    It is the API's report, for operators: a service account with credential:read, or an admin of an internal
    organization. It needs no access to the database.
    """
    found = session.client.accounts.outbox_health()
    if session.out.as_json:
        session.out.document(found)
        return
    session.out.line(health_line(found), mark="✗" if unanswered(found) else "✓")
    session.out.table(TITLES, map(entry_row, found.entries), right=NUMBERS, empty="the outbox is empty")


def unanswered(found: "OutboxHealth") -> int:
    """Failed rows that nobody has driven again."""
    return found.failed - found.redriven


def health_line(found: "OutboxHealth") -> str:
    """`2 pending, 0 processing, 120 completed, 1 failed: tip outbox list accounts`."""
    counts = f"{found.pending} pending, {found.processing} processing, {found.completed} completed"
    failed = f"{unanswered(found)} failed, {found.redriven} driven again"
    return f"{counts}, {failed}" + (": tip outbox list accounts" if unanswered(found) else "")


def entry_row(entry: "OutboxEntry") -> tuple[str, ...]:
    oldest, claimed = age_at(entry.oldest_created_at), age_at(entry.oldest_claimed_at)
    return (entry.status, entry.event_type, str(entry.count), oldest, str(entry.max_attempts), claimed)
