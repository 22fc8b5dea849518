"""Refusals by controls: listed for readers, and taken to the logs of their accounts for the stream."""

from collections.abc import Callable
from threading import Event
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from intents import model, store
from intents.usecases.deps import Deps
from intents.usecases.orders import candidates
from intents.usecases.reads import STATEMENT_LIMIT_MS, Reader, visible


class RefusalQuery(NamedTuple):
    wanted: model.RefusalFilter
    before: model.RefusalKey | None
    limit: int


class RefusalPage(NamedTuple):
    refusals: list[model.RefusedCommand]
    last: model.RefusalKey | None
    """The key after which the next page begins; None when there is none."""


def list_refusals(deps: Deps, reader: Reader, parse_query: Callable[[], RefusalQuery]) -> RefusalPage:
    """A page, newest first. It may hold fewer than its limit, even none, and have a next one all the same."""
    with deps.engine.begin() as tx:
        store.limit_statements(tx, STATEMENT_LIMIT_MS)
        account = visible(tx, reader)
        wanted, before, limit = parse_query()
        most = candidates(wanted, limit)
        keys = store.refusal_keys(tx, account.id, wanted, before, most)
        passing = [key for key, passes in keys if passes]
        found = store.refusals(tx, account.id, passing[:limit])
    if len(passing) > limit:
        return RefusalPage(found, passing[limit - 1])
    return RefusalPage(found, keys[-1][0] if len(keys) == most else None)


def log_refusals(deps: Deps, stop: Event | None = None) -> int:
    """Take what was refused since to the logs, one account a transaction; how many refusals there were."""
    with deps.engine.begin() as tx:
        accounts = store.accounts_with_unlogged_refusals(tx)
    count = 0
    for account_id in accounts:
        if stop and stop.is_set():
            break
        with deps.engine.begin() as tx:
            sequences = _log(tx, account_id)
        count += len(sequences)
        if last := max(sequences.values(), default=0):
            deps.hints.publish(account_id, last)
    return count


def _log(tx: Connection, account_id: UUID) -> dict[model.RefusalKey, int]:
    """The sequence that each has in the log; 0 for those beyond what a minute logs."""
    refused = store.unlogged_refusals(tx, account_id)
    if not refused:
        return {}
    logged = store.logged_by_minute(tx, account_id, refused[0].created_at)
    sequences = dict.fromkeys((refusal.key for refusal in refused), 0)
    for refusal in model.to_log(refused, logged):
        sequences[refusal.key] = _append(tx, refusal)
    store.mark_logged(tx, account_id, sequences)
    return sequences


def _append(tx: Connection, refused: model.RefusedCommand) -> int:
    payload = model.refusal_record(refused)
    event = {"id": refused.id, "type": "REFUSAL", "payload": payload, "occurred_at": refused.created_at}
    return store.append_to_all(tx, refused.organization_id, [refused.account_id], event)[refused.account_id]
