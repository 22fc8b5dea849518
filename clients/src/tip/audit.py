"""`tip audit`"""

from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tip.moments import Moment, clock
from tip.names import actor_name
from tip.people import organization_of
from tip.plain import short
from tip.saving import print_pieces, save
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.identity import AuditEntry

TITLES = ("TIME", "NUMBER", "WHO", "TYPE", "TARGET", "FROM", "TO", "REQUEST")
_LIMIT = click.IntRange(1, 10_000)


@click.group(invoke_without_command=True)
@click.option("--since", type=Moment(), help="An age such as 7d, or a time.")
@click.option("--limit", type=_LIMIT, default=50, show_default=True, help="How many, newest first.")
@click.option("--type", "type_", help="Only of this type, such as membership.updated.")
@with_session
def command(session: Session, since: datetime | None, limit: int, type_: str | None) -> None:
    """List and export who changed people, keys and entitlements.

    For admins of the organization.
    """
    if not click.get_current_context().invoked_subcommand:
        list_entries(session, limit, from_=since, type_=type_)


@command.command("list")
@click.option("--since", type=Moment(), help="An age such as 7d, or a time.")
@click.option("--to", type=Moment(), help="Entries before then.")
@click.option("--type", "type_", help="Only of this type, such as membership.updated.")
@click.option("--target", help="Only about this person, key or entitlement.")
@click.option("--actor", help="Only by whoever has this id.")
@click.option("--limit", type=_LIMIT, default=50, show_default=True, help="How many, newest first.")
@with_session
def list_command(session: Session, /, since: datetime | None, limit: int, **wanted: Any) -> None:
    """List the newest entries of the audit log."""
    list_entries(session, limit, from_=since, **wanted)


@command.command()
@click.option("--from", "since", type=Moment(), help="Entries since then: an age such as 30d, or a time.")
@click.option("--to", type=Moment(), help="Entries before then.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A new file, instead of standard output.")
@with_session
def export(session: Session, since: datetime | None, to: datetime | None, output: Path | None) -> None:
    """Download the audit log as JSON lines, oldest first."""
    if session.out.as_json and output is None:
        raise click.UsageError("an export is JSON lines already: --json goes with --output")
    pieces: Any = session.client.organizations.export_audit_entries(organization_of(session), from_=since, to=to)
    with closing(pieces):
        if output is None:
            print_pieces(session, pieces, "audit log")
            return
        size, lines = save(pieces, output)
    session.out.result({"file": str(output), "bytes": size, "entries": lines}, f"{lines} entries in {output}")


def list_entries(session: Session, limit: int, **wanted: Any) -> None:
    organization_id = organization_of(session)
    found = session.client.organizations.audit_entries(organization_id, page_size=min(limit, 500), **wanted)
    session.out.records(islice(found, limit), TITLES, entry_row, empty="no entries")


def entry_row(entry: "AuditEntry") -> tuple[str, ...]:
    about = (clock(entry.created_at), str(entry.sequence), actor_name(entry.actor, {}), entry.type, entry.target)
    return (*about, _values(entry.from_), _values(entry.to), short(entry.request_id) if entry.request_id else "-")


def _values(values: Mapping[str, Any] | None) -> str:
    return " ".join(f"{name}={value}" for name, value in (values or {}).items()) or "-"
