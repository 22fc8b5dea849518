"""Trading accounts: one function per use case, one transaction each."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

import tip_brokers
from accounts import model, store
from accounts.usecases.deps import Deps
from chassis import db
from chassis.outbox import Event, Outbox
from chassis.principals import Principal


def create_account(deps: Deps, principal: Principal, new: model.NewAccount) -> model.Account:
    if principal.bounds.accounts is not None:
        raise model.OutsideBounds
    model.check_environment(principal.environment, new.environment)
    simulated = tip_brokers.find(new.broker).is_simulated
    model.check_rehearsal(new, simulated=simulated, allowed=deps.live_rehearsal)
    with deps.outbox.begin() as tx:
        organization_id = organization_of(principal)
        store.lock_organization(tx, organization_id)
        account = store.insert_account(tx, uuid4(), organization_id, new)
        model.check_limit(store.count_accounts(tx, organization_id), deps.most_accounts)
        append_account_event(deps.outbox, tx, model.ACCOUNT_CREATED, account)
    return account


def read_account(deps: Deps, principal: Principal, account_id: UUID) -> model.Account:
    with db.reading(deps.engine) as tx:
        return visible(tx, principal, account_id)


def list_accounts(deps: Deps, principal: Principal, after: store.Position | None, limit: int) -> list[model.Account]:
    """The accounts the caller may touch: a key sees those of its own environment, and within its bounds."""
    with db.reading(deps.engine) as tx:
        return store.list_accounts(
            tx, organization_of(principal), principal.environment, after, limit, principal.bounds.accounts
        )


def change_account(
    deps: Deps, principal: Principal, account_id: UUID, changes: Mapping[str, Any], expected: int | None
) -> model.Account:
    """Make the changes; those that change nothing leave version and outbox as they are."""
    with deps.outbox.begin() as tx:
        return _changed(deps, tx, visible(tx, principal, account_id, lock=True), changes, expected)


def _changed(
    deps: Deps, tx: Connection, account: model.Account, changes: Mapping[str, Any], expected: int | None
) -> model.Account:
    model.check_version(expected, account.version)
    if model.really_changed(account, changes):
        account = store.update_account(tx, account.id, changes)
        append_account_event(deps.outbox, tx, model.ACCOUNT_UPDATED, account)
    return account


def disable_account(
    deps: Deps, principal: Principal, account_id: UUID, reason: str | None, expected: int | None
) -> model.Account:
    """Refuse intents from now on. Whoever reads the account after this has returned sees it."""
    return change_account(deps, principal, account_id, {"disabled": True, "disabled_reason": reason}, expected)


def enable_account(deps: Deps, principal: Principal, account_id: UUID, expected: int | None) -> model.Account:
    """Accept intents again; AccountClosing of an account that is being deleted, which never does."""
    with deps.outbox.begin() as tx:
        account = visible(tx, principal, account_id, lock=True)
        if account.closing_operation_id:
            raise model.AccountClosing
        return _changed(deps, tx, account, {"disabled": False, "disabled_reason": None}, expected)


def visible(tx: Connection, principal: Principal, account_id: UUID, *, lock: bool = False) -> model.Account:
    """The caller's account, or NotFound as for one that does not exist; WrongEnvironment for a key of the other."""
    account = store.find_account(tx, organization_of(principal), account_id, lock=lock)
    if account is None:
        raise model.NotFound
    model.check_environment(principal.environment, account.environment)
    return account


def organization_of(principal: Principal) -> UUID:
    if principal.organization_id is None:  # the routes admit nobody without one
        raise model.NotFound
    return principal.organization_id


def revoke(outbox: Outbox, tx: Connection, account: model.Account, credential_id: UUID) -> None:
    version = store.revoke_credential(tx, credential_id)
    append_credential_event(outbox, tx, model.CREDENTIAL_DELETED, account, credential_id, version)


def append_credential_event(
    outbox: Outbox, tx: Connection, event_type: str, account: model.Account, credential_id: UUID, version: int
) -> None:
    payload = {
        "organization_id": str(account.organization_id),
        "account_id": str(account.id),
        "credential_id": str(credential_id),
        "version": version,
    }
    # In order per credential, not per account: a credential that the vault refuses must not hold up a disable.
    outbox.append(tx, Event(event_type, payload, ordering_key=str(credential_id)))


def append_account_event(
    outbox: Outbox,
    tx: Connection,
    event_type: str,
    account: model.Account,
    command: Mapping[str, Any] | None = None,
) -> UUID:
    """The id of the event, which carries the command."""
    payload = {
        "organization_id": str(account.organization_id),
        "account_id": str(account.id),
        "version": account.version,
    }
    return outbox.append(tx, Event(event_type, payload | dict(command or {}), ordering_key=str(account.id)))
