"""`tip verify`"""

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain as chain_lines
from typing import IO, Any
from uuid import UUID

import click
from sqlalchemy import NullPool, create_engine

from chassis import db
from intents import store
from intents.model import chain
from intents.usecases.reads import check_signature
from tip import log_keys, statement_file
from tip.online_verification import verify_online
from tip.session import Session, with_caller
from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings

BROKEN = 3  # click ends with 2 where the command itself is wrong, and a fault of ours with 1
PAGE = 1_000
TEXTS = ("id", "previous_hash", "hash")
_SPACE = re.compile(r"\s*")


@click.command()
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--account", type=click.UUID, help="This account's log: from the database, or with --online.")
@click.option("--public-key", help="In hexadecimal: the key that must have signed the log, whatever the database says.")
@click.option("--keys", "published", help="The published keys that a statement is checked with: a file, or their URL.")
@click.option("--online", is_flag=True, help="Have the platform check the log of the account that the profile means.")
@with_caller
def command(
    file: IO[bytes] | None, account: UUID | None, public_key: str | None, published: str | None, online: bool
) -> None:
    """Check the chain of hashes of an account's log. Exit code 3 if a link is broken.

    FILE is a statement, as `tip statement` downloads it, or "-" for standard input. It is checked with --keys, what GET
    /.well-known/log-jwks.json answers, or with one --public-key. Nothing can be changed in it, left out or moved
    unnoticed.

    FILE may also hold action records as the API lists them, in order: one JSON record a line, or whole pages. Each
    record proves itself; whether one is missing only a statement shows, because events stand between actions.

    In the database the whole log is followed and compared with its signed head. With --public-key, which intents-signer
    logs when it starts, a log that is not signed is broken. Entries after the sequence up to which it is attested are
    the database's word alone.

    With --online the platform checks its own log, for readers of intents: exit code 1 if a link is broken.
    """
    if online:
        if file or public_key or published:
            raise click.UsageError("with --online the platform checks with its own keys: leave FILE and keys out")
        verify_online(Session(click.get_current_context(), str(account) if account else None))
        return
    if (file is None) == (account is None):
        raise click.UsageError("give a FILE, --account or --online")
    if file:
        _verify_file(file, _key(public_key), published)
    elif account:
        end, attested = from_database(account, _key(public_key))
        _report(end)
        click.echo(f"tip: {attested or 'attested by no signature'}")


def _verify_file(file: IO[bytes], public_key: bytes | None, published: str | None) -> None:
    first = next(statement_file.lines_of(file), b"")
    if statement_file.is_statement(first):
        _verify_statement(chain_lines([first], statement_file.lines_of(file)), log_keys.given(public_key, published))
    elif public_key is not None or published is not None:
        raise click.UsageError("keys are for a statement or --account: action records have no signature")
    else:
        _report(chain.follow_excerpt(records(io.TextIOWrapper(io.BytesIO(first + file.read()), "utf-8", "replace"))))
        click.echo("tip: each record proves itself; whether one is missing between them only a statement shows")


def _verify_statement(lines: Iterable[bytes], keys: Mapping[str, bytes]) -> None:
    try:
        found = statement_file.verify(lines, keys)
    except statement_file.NotVerified as fault:
        click.echo(f"tip: BROKEN at {fault}")
        sys.exit(BROKEN)
    click.echo(
        f"tip: {found.entries} entries of account {found.account_id} verified, sequence {found.first_sequence} to "
        f"{found.last_sequence}, for the period from {found.since or 'the beginning'} to {found.to or 'the end'}; "
        f"attested at {found.signed_at} by key {found.key_id} in log epoch {found.epoch}"
    )


def _report(end: chain.End) -> None:
    if end.broken:
        sequence, action_id, reason = end.broken
        where = action_id or "no entry"
        click.echo(f"tip: BROKEN at sequence {sequence} ({where}): {reason}; {end.checked} entries before it are good")
        sys.exit(BROKEN)
    click.echo(f"tip: {end.checked} entries verified, up to sequence {end.sequence}, hash {end.hash.hex()}")


def _key(public_key: str | None) -> bytes | None:
    try:
        return None if public_key is None else bytes.fromhex(public_key)
    except ValueError:
        raise click.UsageError("--public-key must be hexadecimal") from None


def records(file: IO[str]) -> Iterator[chain.Entry]:
    """Action records out of lines, of arrays and of pages alike."""
    decoder, text = json.JSONDecoder(), file.read()
    place = _after_space(text, 0)
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
            yield from _unpacked(value)
            place = _after_space(text, place)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Fault("the file does not hold action records, each with its id, sequence and hashes") from None


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _unpacked(value: Any) -> Iterator[chain.Entry]:
    found = value if isinstance(value, list) else value.get("data", [value])
    for record in found:
        sequence, texts = record["sequence"], [record[name] for name in TEXTS]
        if type(sequence) is not int or abs(sequence) >= 2**63 or not all(isinstance(part, str) for part in texts):
            raise ValueError("a record lacks its id, sequence or hashes")
        yield chain.action_entry(record)


def from_database(account: UUID, public_key: bytes | None = None) -> tuple[chain.End, str | None]:
    """Where the chain ends, and up to where and by which key it is attested."""
    with database(Settings.from_env()) as stack:
        engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool, isolation_level="REPEATABLE READ")
        with engine.connect() as tx:
            head = store.head(tx, account)
            if head is None:
                raise Fault(f"there is no log of an account {account}")
            end = chain.follow(_entries(tx, account, head[0]))
            signature = store.stored_signature(tx, account)
            broken = end.broken or chain.check_end(end, head[0], head)
            broken = broken or check_signature(signature, head[0], public_key)
            return end._replace(broken=broken), _attested(signature, public_key) if signature else None


def _attested(signature: store.StoredSignature, public_key: bytes | None) -> str:
    key = signature.public_key if public_key is None else public_key
    return f"attested up to sequence {signature.head.sequence} by public key {key.hex()}"


def _entries(tx: Any, account: UUID, until: int) -> Iterator[chain.Entry]:
    for after in range(0, until, PAGE):
        yield from store.entries(tx, account, after, min(after + PAGE, until))
