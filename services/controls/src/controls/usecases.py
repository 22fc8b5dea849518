"""What controls does: one function per use case, one transaction each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection, Engine

from chassis import db, tracing
from chassis.feed import FeedEvent
from chassis.outbox import Event, Outbox
from chassis.principals import Kind, Principal
from control_rules import PRICE_MAX_AGE, TradingState
from controls import model, store

AnyControl = TypeVar("AnyControl", bound=model.Control)


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Deps:
    engine: Engine
    outbox: Outbox
    now: Callable[[], datetime] = _utc_now
    price_max_age: timedelta = PRICE_MAX_AGE
    quote_seconds: float = 5.0
    quote_wait_seconds: float = 2.0


def admit(deps: Deps, principal: Principal, account_id: UUID | None) -> None:
    """Return if the account (or, without one, the organization) is the caller's.

    Whether the organization needs Controls Premium depends on what is to be done: see `_change`.
    """
    with db.reading(deps.engine) as tx:
        _scope(tx, principal, account_id)


def get(
    deps: Deps, principal: Principal, kind: type[AnyControl], account_id: UUID | None, symbol: str | None = None
) -> AnyControl:
    with db.reading(deps.engine) as tx:
        found = store.find(tx, kind, reading_scope(tx, principal, account_id, symbol))
    if found is None:
        raise model.ControlNotFound
    return found


def time_zone(deps: Deps, principal: Principal, account_id: UUID) -> str | None:
    """The account's zone, which the hours of its time controls are in."""
    with db.reading(deps.engine) as tx:
        _scope(tx, principal, account_id)
        return store.time_zone(tx, account_id)


def put(
    deps: Deps,
    principal: Principal,
    kind: type[AnyControl],
    account_id: UUID | None,
    symbol: str | None,
    values: Mapping[str, Any],
    *,
    expected: int | None = None,
) -> tuple[AnyControl, bool]:
    """Create or replace a control; the control, and whether it is new."""
    control, is_new, _ = _change(deps, principal, kind, (account_id, symbol), lambda _: values, expected)
    return control, is_new


def halt_and_cancel(
    deps: Deps,
    principal: Principal,
    kind: type[AnyControl],
    account_id: UUID | None,
    values: Mapping[str, Any],
    *,
    expected: int | None = None,
) -> tuple[AnyControl, bool, UUID | None]:
    """Set the switch and have every open intent canceled; also the id of the bulk operations that intents makes of it.

    One transaction: whoever sees the switch set can rely on the cancels.
    """
    command = {"cancel_open": True}
    return _change(deps, principal, kind, (account_id, None), lambda _: values, expected, command)


def patch_time(
    deps: Deps,
    principal: Principal,
    account_id: UUID,
    symbol: str,
    patch: model.TimePatch,
    *,
    expected: int | None = None,
) -> tuple[model.SymbolTime, bool]:
    """Create or patch a time control; the control, and whether it is new. A patch without an effect writes nothing."""
    where = (account_id, symbol)
    control, is_new, _ = _change(deps, principal, model.SymbolTime, where, patch.applied_to, expected)
    return control, is_new


def delete(
    deps: Deps,
    principal: Principal,
    kind: type[model.Control],
    account_id: UUID | None,
    symbol: str | None = None,
    *,
    expected: int | None = None,
) -> None:
    """Remove a control. It lifts what the control refuses, and so needs no Controls Premium."""
    with deps.outbox.begin() as tx:
        scope = _writing_scope(tx, principal, account_id, symbol)
        before = store.lock(tx, kind, scope)
        if before is None:
            raise model.ControlNotFound
        _require(before, expected)
        gone = store.remove(tx, kind, scope)
        actor = _record(tx, _actor(principal), kind, scope, (before, None), gone.version)
        deps.outbox.append(tx, _updated(kind, scope, gone.version, actor, deleted=True))


def _change(
    deps: Deps,
    principal: Principal,
    kind: type[AnyControl],
    where: tuple[UUID | None, str | None],
    values: Callable[[AnyControl | None], Mapping[str, Any] | None],
    expected: int | None,
    command: Mapping[str, Any] | None = None,
) -> tuple[AnyControl, bool, UUID | None]:
    """The control, whether it is new, and the id of the event, which carries the command. Values of None: no change.

    Setting or tightening a control needs Controls Premium, loosening one does not.
    """
    with deps.outbox.begin() as tx:
        scope = _writing_scope(tx, principal, *where)
        before = store.lock(tx, kind, scope)
        _require(before, expected)
        if (new := values(before)) is None:
            return _unchanged(before), False, None
        after = store.write(tx, kind, scope, new)
        if before is None or not model.is_loosening(before, after):
            _require_premium(principal)
        actor = _record(tx, _actor(principal), kind, scope, (before, after), after.version)
        event_id = deps.outbox.append(tx, _updated(kind, scope, after.version, actor, command=command))
    return after, before is None, event_id


def list_symbols(
    deps: Deps, principal: Principal, account_id: UUID, after: str, limit: int
) -> tuple[list[model.SymbolControls], bool]:
    """A page of the symbols that have a control, with all of theirs; and whether there are more."""
    with db.reading(deps.engine) as tx:
        scope = reading_scope(tx, principal, account_id)
        symbols = store.symbols_after(tx, account_id, after, limit + 1)
        manual = store.of_symbols(tx, model.SymbolManual, account_id, symbols)
        time = store.of_symbols(tx, model.SymbolTime, account_id, symbols)
        limits = store.of_symbols(tx, model.SymbolLimits, account_id, symbols)
    page = [
        model.SymbolControls(
            account_id, scope.organization_id, symbol, manual.get(symbol), time.get(symbol), limits.get(symbol)
        )
        for symbol in symbols[:limit]
    ]
    return page, len(symbols) > limit


def history(
    deps: Deps, principal: Principal, account_id: UUID | None, symbol: str | None, before: int | None, limit: int
) -> tuple[list[model.ControlChange], bool]:
    """A page of what changed, newest first; and whether there is more."""
    with db.reading(deps.engine) as tx:
        changes = store.changes(tx, reading_scope(tx, principal, account_id, symbol), before, limit + 1)
    return changes[:limit], len(changes) > limit


def apply_account_event(tx: Connection, event: FeedEvent) -> None:
    """An account deleted takes its controls along."""
    if event.event_type == "account.deleted":
        store.forget_account(tx, UUID(event.payload["account_id"]))


def reduce_after_loss(outbox: Outbox, tx: Connection, event: FeedEvent) -> None:
    """An account that lost more than it may only reduces from now on. One that is not ACTIVE stays as it is."""
    if event.event_type != model.DAILY_LOSS_BREACHED:
        return
    scope = model.Scope(UUID(event.payload["organization_id"]), UUID(event.payload["account_id"]))
    before = store.lock(tx, model.AccountSwitch, scope)
    if before and before.trading_state != TradingState.ACTIVE:
        return
    lost, most = event.payload["loss"], event.payload["max_daily_loss"]
    reason = f"system: the account lost {lost} since its day began, of max_daily_loss {most}"
    values = {"trading_state": str(TradingState.REDUCING), "reason": reason}
    after = store.write(tx, model.AccountSwitch, scope, values)
    actor = _record(tx, model.LOSS_GUARD, model.AccountSwitch, scope, (before, after), after.version)
    outbox.append(tx, _updated(model.AccountSwitch, scope, after.version, actor))


def _scope(tx: Connection, principal: Principal, account_id: UUID | None, symbol: str | None = None) -> model.Scope:
    if principal.organization_id is None:
        raise model.AccountNotFound
    if account_id is not None:
        account = store.account(tx, account_id)
        if account is None or account.organization_id != principal.organization_id:
            raise model.AccountNotFound
        if principal.kind is Kind.API_KEY and principal.environment != account.environment:
            raise model.WrongEnvironment
    return model.Scope(principal.organization_id, account_id, symbol)


def reading_scope(
    tx: Connection, principal: Principal, account_id: UUID | None, symbol: str | None = None
) -> model.Scope:
    scope = _scope(tx, principal, account_id, symbol)
    _require_premium(principal)
    return scope


def _require_premium(principal: Principal) -> None:
    if model.CONTROLS_PREMIUM not in principal.entitlements:
        raise model.EntitlementRequired


def _writing_scope(tx: Connection, principal: Principal, account_id: UUID | None, symbol: str | None) -> model.Scope:
    # Before the account is read: one deleted from here on is cleaned up after this transaction, not under it.
    if account_id is not None:
        store.keep_account(tx, account_id)
    return _scope(tx, principal, account_id, symbol)


def _require(control: model.Control | None, expected: int | None) -> None:
    if expected is not None and (control is None or control.version != expected):
        raise model.VersionMismatch


def _unchanged(control: AnyControl | None) -> AnyControl:
    if control is None:
        raise model.NothingToDo
    return control


def _actor(principal: Principal) -> model.Actor:
    return model.Actor(str(principal.kind), principal.id)


def _record(
    tx: Connection,
    actor: model.Actor,
    kind: type[AnyControl],
    scope: model.Scope,
    states: tuple[AnyControl | None, AnyControl | None],
    version: int,
) -> model.Actor:
    """Add the change between the two states to the history; who made it."""
    trace = tracing.current.get()
    before, after = (None if state is None else model.value(state) for state in states)
    control = {"control": store.name(kind), "version": version, "value_before": before, "value_after": after}
    origin = {"actor_type": actor.type, "actor_id": actor.id, "request_id": trace.request_id if trace else None}
    store.append_change(tx, scope, control | origin)
    return actor


def _updated(
    kind: type[model.Control],
    scope: model.Scope,
    version: int,
    actor: model.Actor,
    *,
    deleted: bool = False,
    command: Mapping[str, Any] | None = None,
) -> Event:
    """Ids, the name of the control and who changed it; its values are read from its table."""
    ids = {"organization_id": scope.organization_id, "account_id": scope.account_id, "symbol": scope.symbol}
    payload = {name: str(value) for name, value in ids.items() if value is not None}
    return Event(
        model.CONTROL_UPDATED,
        {
            **payload,
            "control": store.name(kind),
            "version": version,
            "deleted": deleted,
            **(command or {}),
            "actor": actor._asdict(),
        },
        ordering_key=str(scope.account_id or scope.organization_id),
    )
