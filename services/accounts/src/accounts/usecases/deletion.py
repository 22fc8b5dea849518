"""Deleting accounts.

An account is closed first, in a transaction of its own: from its commit on no intent is accepted or sent. Whether
orders are open is read after that, so none can come in between. What a crash leaves closed the worker finishes.
"""

from contextlib import suppress
from threading import Event as StopEvent
from uuid import UUID

from sqlalchemy import Connection, func

from accounts import model, store
from accounts.usecases.accounts import append_account_event, organization_of, revoke, visible
from accounts.usecases.deps import Deps
from chassis import db
from chassis.outbox import Outbox
from chassis.principals import Principal

ATTEMPTS = 5  # how often other deletions may be refused between the two transactions of one


class _OpenedAgain(Exception):
    """Another deletion, which was refused, has opened the account between the two transactions of this one."""


def delete_account(
    deps: Deps, principal: Principal, account_id: UUID, expected: int | None, *, cancel_open: bool = False
) -> model.Account | None:
    """Delete the account and revoke its credentials. The account, if its open orders are to be canceled before."""
    for _ in range(ATTEMPTS):
        with suppress(_OpenedAgain):
            return _delete(deps, principal, account_id, expected, cancel_open=cancel_open)
    raise model.OpenIntents


def _delete(
    deps: Deps, principal: Principal, account_id: UUID, expected: int | None, *, cancel_open: bool
) -> model.Account | None:
    with deps.engine.begin() as tx:
        before = visible(tx, principal, account_id, lock=True)
        model.check_version(expected, before.version)
        if not cancel_open and not before.closing and store.open_orders(tx, account_id):
            raise model.OpenIntents  # without having closed it: what waits to be sent would be refused meanwhile
        store.close_account(tx, account_id)
    with deps.outbox.begin() as tx:
        account = store.find_account(tx, organization_of(principal), account_id, lock=True)
        if account and not account.closing:
            raise _OpenedAgain
        if account is None or _deleted(deps.outbox, tx, account):  # without one, the worker was faster
            return None
        if account.closing_operation_id:
            return account
        if cancel_open:
            return _cancel_open(deps.outbox, tx, principal, account)
        store.reopen_account(tx, account_id)
    raise model.OpenIntents


def finish_deletions(outbox: Outbox, stop: StopEvent | None = None) -> int:
    """Delete closed accounts that have no open order any more; reopen what a crash left closed. How many there were."""
    with db.reading(outbox.engine) as tx:
        found = store.accounts_to_finish(tx)
    for account_id in found:
        if stop and stop.is_set():
            break
        with outbox.begin() as tx:
            _finish(outbox, tx, account_id)
    return len(found)


def _finish(outbox: Outbox, tx: Connection, account_id: UUID) -> None:
    account = store.lock_closed_account(tx, account_id)
    if account and not _deleted(outbox, tx, account) and account.closing_operation_id is None:
        store.reopen_account(tx, account_id)


def _deleted(outbox: Outbox, tx: Connection, account: model.Account) -> bool:
    """Delete the closed account unless an order is open. The relay destroys what the vault has of the credentials."""
    if store.open_orders(tx, account.id):
        return False
    for credential in store.list_credentials(tx, account.id, None, None):
        revoke(outbox, tx, account, credential.id)
    deleted = store.update_account(tx, account.id, {"deleted_at": func.now()})
    append_account_event(outbox, tx, model.ACCOUNT_DELETED, deleted)
    return True


def _cancel_open(outbox: Outbox, tx: Connection, principal: Principal, account: model.Account) -> model.Account:
    """Have intents cancel what is open: it makes a bulk operation of the event, under the event's id."""
    command = {"cancel_open": True, "actor": {"type": principal.kind, "id": principal.id}}
    changed = store.update_account(tx, account.id, {})
    event_id = append_account_event(outbox, tx, model.ACCOUNT_UPDATED, changed, command)
    return store.record_closing_operation(tx, account.id, event_id)
