"""`tip outbox`"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from tip.outbox_health import health
from tip.output import Output
from tip.session import json_option, shown_as_json
from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings

STATUSES = ("pending", "processing", "completed", "failed")
LIST = """
SELECT id, status, event_type, attempts, created_at, last_error,
       (SELECT max(c.id) FROM {schema}.outbox c WHERE c.redriven_from = o.id) AS redriven_as
FROM {schema}.outbox o WHERE status = :status ORDER BY id LIMIT :limit
"""
EXPLAIN = """
SELECT id, event_id, event_type, ordering_key, status, attempts, created_at, available_at, claimed_at, settled_at,
       position, last_error, payload,
       (SELECT min(e.id) FROM {schema}.outbox e
        WHERE e.ordering_key = o.ordering_key AND e.id < o.id AND e.status IN ('pending', 'processing')) AS behind,
       redriven_from, (SELECT max(c.id) FROM {schema}.outbox c WHERE c.redriven_from = o.id) AS redriven_as
FROM {schema}.outbox o WHERE id = :id
"""


@click.group()
def command() -> None:
    """Look into a service's outbox and drive failed rows again."""


command.add_command(health)


def output() -> Output:
    return Output(as_json=shown_as_json(click.get_current_context()))


@command.command("list")
@click.argument("service")
@click.option("--status", type=click.Choice(STATUSES), default="failed", show_default=True)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@json_option
def list_rows(service: str, status: str, limit: int) -> None:
    """Show the oldest rows of a status."""
    with connected(service) as tx:
        rows = tx.execute(text(LIST.format(schema=service)), {"status": status, "limit": limit}).all()
    if output().as_json:
        output().document({"data": [row._mapping for row in rows]})
        return
    if not rows:
        click.echo(f"tip: {service} has no {status} rows")
        return
    click.echo(f"{'ID':>10}  {'EVENT TYPE':<22} {'ATTEMPTS':>8}  {'QUEUED':<20} LAST ERROR")
    for row in rows:
        queued = row.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        redriven = f" (redriven as {row.redriven_as})" if row.redriven_as else ""
        why = f"{row.last_error or '-'}{redriven}"
        click.echo(f"{row.id:>10}  {row.event_type:<22} {row.attempts:>8}  {queued:<20} {why}")


@command.command()
@click.argument("service")
@click.argument("row_id", type=int)
@json_option
def explain(service: str, row_id: int) -> None:
    """Show one row, and what its state means."""
    with connected(service) as tx:
        row = tx.execute(text(EXPLAIN.format(schema=service)), {"id": row_id}).one_or_none()
    if row is None:
        raise Fault(f"{service} has no outbox row {row_id}")
    if output().as_json:
        output().document({"row": row._mapping, "explanation": [line.strip() for line in explanation(row)]})
        return
    for name, value in row._mapping.items():
        if value is not None and name not in ("behind", "redriven_as"):
            click.echo(f"{name:<13} {value}")
    for line in explanation(row):
        click.echo(line)


def explanation(row: Any) -> Iterator[str]:
    explanations = import_module("chassis.outbox.explanations")
    yield f"\n{explanations.MEANINGS[row.status]}"
    if row.last_error:
        yield f"Last error: {explanations.cause_of(row.last_error)}."
    if row.behind is not None:
        yield f"It waits behind row {row.behind}, which has the same ordering key."
    if row.redriven_as is not None:
        yield f"It was driven again as row {row.redriven_as}."


@command.command()
@click.argument("service")
@click.argument("row_ids", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every failed row that was not driven again yet.")
@click.option("--event-type", help="With --all: only rows of this type.")
@click.option("--again", is_flag=True, help="With rows: also those that were driven again before.")
@json_option
def redrive(service: str, row_ids: tuple[int, ...], everything: bool, event_type: str | None, again: bool) -> None:
    """Copy failed rows into new ones; the failed rows stay as they are."""
    if bool(row_ids) == everything:
        raise click.UsageError("name rows, or say --all")
    if everything and again:
        raise click.UsageError("--again is for rows that are named")
    with connected(service) as tx:
        outbox = import_module("chassis.outbox").Outbox(tx.engine, service)
        chosen = row_ids or failed(tx, service, event_type)
        driven = [(row_id, driven_again(outbox, tx, row_id, again)) for row_id in chosen]
    if output().as_json:
        output().document({"data": [{"id": row_id, "redriven_as": new} for row_id, new in driven]})
        return
    for row_id, new in driven:
        click.echo(f"row {row_id} is driven again as row {new}")
    if not driven:
        click.echo(f"tip: {service} has no failed rows left to drive again")


def driven_again(outbox: Any, tx: Connection, row_id: int, again: bool) -> int:
    new: int | None = outbox.redrive(tx, row_id, again=again)
    if new is None and (copy := outbox.copy_of(tx, row_id)):
        raise Fault(f"row {row_id} was driven again as row {copy} before; nothing was driven again now (see --again)")
    if new is None:
        raise Fault(f"{outbox.schema} has no failed outbox row {row_id}; nothing was driven again")
    return new


def failed(tx: Connection, schema: str, event_type: str | None) -> list[int]:
    """Those that were not driven again yet, oldest first."""
    found = tx.execute(
        text(
            f"SELECT id FROM {schema}.outbox f WHERE status = 'failed' "  # noqa: S608
            "AND (CAST(:event_type AS text) IS NULL OR event_type = :event_type) "
            f"AND NOT EXISTS (SELECT 1 FROM {schema}.outbox c WHERE c.redriven_from = f.id) ORDER BY id"
        ),
        {"event_type": event_type},
    )
    return list(found.scalars())


@contextmanager
def connected(service: str) -> Iterator[Connection]:
    """One transaction on the platform's database, as its administrator."""
    migrations, db = import_module("chassis.migrations"), import_module("chassis.db")
    if service not in migrations.services():
        raise Fault(f"there is no service {service}; there are {', '.join(migrations.services())}")
    with database(Settings.from_env()) as stack:
        engine: Engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool)
        with engine.begin() as tx:
            if tx.execute(text("SELECT to_regclass(:name)"), {"name": f"{service}.outbox"}).scalar_one() is None:
                raise Fault(f"{service} has no outbox")
            yield tx
