"""`tip verify`"""

import json
import sys
from collections.abc import Iterator
from typing import IO, Any
from uuid import UUID

import click
from sqlalchemy import NullPool, create_engine

from chassis import db
from intents import model, store
from intents.model import chain
from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings

BROKEN = 2
PAGE = 1_000
HASHES = ("previous_hash", "hash")


@click.command()
@click.argument("file", type=click.File("r"), required=False)
@click.option("--account", type=click.UUID, help="Read this account's actions from the database instead of a file.")
def command(file: IO[str] | None, account: UUID | None) -> None:
    """Check the chain of hashes of an account's actions. Exit code 2 if a link is broken.

    FILE holds action records as the API lists them, in order: one JSON record a line, or whole pages ("-" is standard
    input). A file proves itself; whether its last action is the account's last one, only the database knows.
    """
    if (file is None) == (account is None):
        raise click.UsageError("give a FILE or --account")
    end = chain.follow(records(file)) if file else from_database(account)
    if end.broken:
        sequence, action_id, reason = end.broken
        where = f"action {action_id}" if action_id else "no action"
        click.echo(f"tip: BROKEN at sequence {sequence} ({where}): {reason}; {end.checked} actions before it are good")
        sys.exit(BROKEN)
    click.echo(f"tip: {end.checked} actions verified, up to sequence {end.sequence}, hash {end.hash.hex()}")


def records(file: IO[str]) -> Iterator[dict[str, Any]]:
    """Records out of lines, of arrays and of pages alike."""
    decoder, text = json.JSONDecoder(), file.read()
    place = 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        try:
            value, place = decoder.raw_decode(text, place)
            yield from _unpacked(value)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Fault("the file does not hold action records, each with its sequence and hashes") from None


def _unpacked(value: Any) -> Iterator[dict[str, Any]]:
    found = value if isinstance(value, list) else value.get("data", [value])
    for record in found:
        if type(record["sequence"]) is not int or not all(isinstance(record[name], str) for name in HASHES):
            raise ValueError("a record lacks its sequence or hashes")
        yield record


def from_database(account: UUID | None) -> chain.End:
    assert account is not None  # noqa: S101 - the caller has just looked
    with database(Settings.from_env()) as stack:
        engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool, isolation_level="REPEATABLE READ")
        with engine.connect() as tx:
            last_sequence, last_hash = store.head(tx, account) or (0, chain.GENESIS)
            end = chain.follow(_pages(tx, account))
    if end.broken is None and end.hash != last_hash:
        return end._replace(broken=chain.Broken(last_sequence, None, "last_actions_missing"))
    return end


def _pages(tx: Any, account: UUID) -> Iterator[dict[str, Any]]:
    after = 0
    while page := store.page(tx, account, after, PAGE):
        yield from (model.record(action) for action in page)
        after = page[-1].sequence
