"""The statement of an account: its log between two moments as one file, and the keys that it is verified with."""

import hashlib
import time
from collections.abc import Callable, Iterator
from uuid import UUID

from sqlalchemy import Connection

from chassis import db, tenancy
from intents import model, store
from intents.model import chain
from intents.usecases.deps import Deps
from intents.usecases.reads import STATEMENT_LIMIT_MS, Reader, visible

ENTRIES_AT_ONCE = 100  # some 20 ms of work, after which others get their turn


def statement(
    deps: Deps, reader: Reader, parse_period: Callable[[], model.Period], charge_rows: Callable[[int], None]
) -> Iterator[bytes]:
    """The file, in chunks. Each chunk is read in a transaction of its own: nothing of the log ever changes."""
    with deps.engine.begin() as tx:
        store.limit_statements(tx, STATEMENT_LIMIT_MS)
        account = visible(tx, reader)
        found = _statement(tx, account.id, parse_period())
    charge_rows(found.closing.sequence - found.sequence)
    return _file(deps, account.organization_id, found)


def _statement(tx: Connection, account_id: UUID, period: model.Period) -> model.Statement:
    """From the last entry before the period, which shows that none is missing after it, to a head that covers it."""
    last, _ = store.head(tx, account_id) or (0, chain.GENESIS)
    before = store.sequence_before(tx, account_id, period.since) if period.since else 0
    until = store.sequence_before(tx, account_id, period.to) if period.to else last
    closing = store.closing_head(tx, account_id, until, period.to)
    if closing is None or closing.sequence < max(before, 1):
        raise model.StatementNotSigned
    after = max(before - 1, 0)
    return model.Statement(account_id, period, after, _hash_at(tx, account_id, after), closing)


def _hash_at(tx: Connection, account_id: UUID, sequence: int) -> bytes:
    """What the entry after it names."""
    following = store.entries(tx, account_id, sequence, sequence + 1)
    return following[0].previous_hash if following else chain.GENESIS


def _file(deps: Deps, organization_id: UUID, found: model.Statement) -> Iterator[bytes]:
    covered = hashlib.sha256()
    for chunk in _chunks(deps, organization_id, found):
        covered.update(chunk)
        yield chunk
    yield model.closing_line(found.closing, covered.hexdigest())


def _chunks(deps: Deps, organization_id: UUID, found: model.Statement) -> Iterator[bytes]:
    yield model.header_line(found)
    until = found.closing.sequence
    for after in range(found.sequence, until, ENTRIES_AT_ONCE):
        with tenancy.serving([organization_id]), deps.engine.begin() as tx:
            entries = store.entries(tx, found.account_id, after, min(after + ENTRIES_AT_ONCE, until))
        yield b"".join(map(_line, entries))


def _line(entry: chain.Entry) -> bytes:
    time.sleep(0)  # hands over the interpreter
    return model.entry_line(entry)


def log_signing_keys(deps: Deps) -> dict[str, bytes]:
    """The public halves of all keys that ever signed a head, by id, oldest first."""
    with db.reading(deps.engine) as tx:
        return store.log_signing_keys(tx)
