"""Reading the log of an account that the caller may see."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from chassis import db
from chassis.principals import Principal
from intents import model, store
from intents.model import chain
from intents.signing import signature_is_valid
from intents.usecases.deps import Deps

VERIFIED_AT_ONCE = 1_000  # some 200 ms of work: a long log is verified by many calls, among which others get their turn
_VERIFIED_PAGE = 50
STATEMENT_LIMIT_MS = 1_000  # of reads that can be long; others have the connection's own limit


class Page(NamedTuple):
    actions: list[model.Action]
    last: int | None
    """The sequence after which the next page begins; None when there is none."""
    epoch: UUID
    """What the sequence counts in."""


@dataclass(frozen=True)
class Reader:
    """Who reads which account."""

    principal: Principal
    account_id: UUID


def visible(tx: Connection, reader: Reader) -> model.Account:
    """The account, if it is of the reader's organization; a key reads both environments."""
    account = store.account(tx, reader.account_id)
    if account is None or account.organization_id != reader.principal.organization_id:
        raise model.AccountNotFound
    return account


ParsePage = Callable[[UUID], tuple[int, int]]
"""Given the log epoch, parses after which sequence the page begins and its limit, or raises what is wrong with them.
It is called once the account was found to be visible: whoever may not see it learns nothing else."""


def list_actions(deps: Deps, reader: Reader, parse_page: ParsePage) -> Page:
    with deps.engine.begin() as tx:
        account = visible(tx, reader)
        epoch = store.current_epoch(tx)
        after, limit = parse_page(epoch)
        return _page(store.page(tx, account.id, after, limit + 1), limit, epoch)


def action_history(deps: Deps, reader: Reader, intent_id: UUID, parse_page: ParsePage) -> Page:
    with deps.engine.begin() as tx:
        account = visible(tx, reader)
        epoch = store.current_epoch(tx)
        after, limit = parse_page(epoch)
        actions = store.history(tx, account.id, intent_id, after, limit + 1)
        if not actions and store.latest(tx, account.id, intent_id) is None:
            raise model.IntentNotFound
    return _page(actions, limit, epoch)


def latest_action(deps: Deps, reader: Reader, intent_id: UUID) -> model.Action:
    with db.reading(deps.engine) as tx:
        account = visible(tx, reader)
        action = store.latest(tx, account.id, intent_id)
    if action is None:
        raise model.IntentNotFound
    return action


def statistics(deps: Deps, reader: Reader, parse_time_window: Callable[[], str]) -> model.Statistics:
    """In the requested time window."""
    with _unmoving(deps) as tx:
        store.limit_statements(tx, STATEMENT_LIMIT_MS)
        account = visible(tx, reader)
        time_window = parse_time_window()
        window = model.WINDOWS[time_window]
        now = store.now(tx)
        since = model.start(window, now)
        counts = store.counts(tx, account.id, window.width, since)
    return model.summarize(account.id, time_window, since, now, counts)


def _unmoving(deps: Deps) -> Connection:
    """A transaction that sees one moment from its beginning to its end."""
    return deps.engine.connect().execution_options(isolation_level="REPEATABLE READ")


def _page(found: list[model.Action], limit: int, epoch: UUID) -> Page:
    shown = found[:limit]
    return Page(shown, shown[-1].sequence if len(found) > limit else None, epoch)


class Verification(NamedTuple):
    """What checking a part of the chain showed; `unfinished` when there is more of it."""

    account_id: UUID
    checked: int
    last_sequence: int
    hash: bytes
    broken: chain.Broken | None
    unfinished: bool
    epoch: UUID
    signed_sequence: int | None
    """Up to where the newest signed head attests the log; None as long as nothing is signed."""


def rows_to_verify(after: int, last_sequence: int) -> int:
    """How many rows one call reads at most of a log that ends there."""
    return max(0, min(last_sequence - after, VERIFIED_AT_ONCE))


def verify(deps: Deps, reader: Reader, parse_link: Callable[[UUID, int], tuple[int, bytes]]) -> Verification:
    """Follow the chain of the account from a link that was found good (or its beginning), at most so many entries.

    `parse_link`, given the log epoch and the last sequence, returns the link after which to begin.
    """
    with _unmoving(deps) as tx, tx.begin():
        store.limit_statements(tx, STATEMENT_LIMIT_MS)
        account = visible(tx, reader)
        epoch = store.current_epoch(tx)
        head = store.head(tx, account.id) or (0, chain.GENESIS)
        after, previous = parse_link(epoch, head[0])
        until = min(head[0], after + VERIFIED_AT_ONCE)
        end = chain.follow(_entries(tx, account.id, after, until), after, previous)
        broken = end.broken or chain.check_end(end, until, head)
        signature = store.stored_signature(tx, account.id)
        broken = broken or check_signature(signature, head[0])
    attested = signature.head.sequence if signature else None
    return Verification(account.id, end.checked, end.sequence, end.hash, broken, until < head[0], epoch, attested)


def check_signature(
    signature: store.StoredSignature | None, last_sequence: int, public_key: bytes | None = None
) -> chain.Broken | None:
    """What the signed head says against the log.

    `public_key` is for whoever does not take the database's: to them a log without a signature is not verified, because
    whoever administers the database can delete one.
    """
    if signature is None:
        return None if public_key is None else chain.Broken(last_sequence, None, "not_signed")
    valid = signature_is_valid(signature.head, signature.public_key if public_key is None else public_key)
    return model.check_signed_head(signature.head, last_sequence, signature.logged_hash, signature_is_valid=valid)


def _entries(tx: Connection, account_id: UUID, after: int, until: int) -> Iterator[chain.Entry]:
    for start in range(after, until, _VERIFIED_PAGE):
        for entry in store.entries(tx, account_id, start, min(start + _VERIFIED_PAGE, until)):
            time.sleep(0)  # hands over the interpreter: a request beside this one needs it some twenty times
            yield entry
