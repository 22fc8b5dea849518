"""The outbox, for whoever runs the platform: its health, the rows that failed, and driving those again."""

from sqlalchemy.exc import SQLAlchemyError

from accounts import model
from accounts.usecases.deps import Deps
from chassis import db, logs, tenancy
from chassis.outbox import LAST_ID, FailedRow
from chassis.outbox.explanations import cause_of
from chassis.principals import Kind, Principal

log = logs.get(__name__)


def outbox_health(deps: Deps, principal: Principal) -> model.Health:
    """The whole queue across all organizations."""
    _check_operator(deps, principal)
    try:
        with tenancy.serving_all():
            entries = deps.outbox.report()
    except SQLAlchemyError as error:
        log.error("outbox_health_unreadable", error=type(error).__name__)
        raise model.QueueUnreadable from error
    return model.Health(tuple(model.HealthEntry(**vars(entry)) for entry in entries))


def list_failed_rows(
    deps: Deps, principal: Principal, after: int, limit: int, redriven: bool | None
) -> list[model.FailedRow]:
    """Oldest first, across all organizations."""
    _check_operator(deps, principal)
    with tenancy.serving_all(), db.reading(deps.engine) as tx:
        rows = deps.outbox.failed(tx, after=after, batch=limit, redriven=redriven)
    return [_shown(row) for row in rows]


def redrive_row(deps: Deps, principal: Principal, row_id: str) -> model.FailedRow:
    """Queue a failed row again, as a copy. A row has one: a repetition changes nothing and has the same answer."""
    _check_operator(deps, principal)
    number = _number(row_id)
    with tenancy.serving_all(), deps.outbox.begin() as tx:
        copy = deps.outbox.redrive(tx, number)
        row = deps.outbox.failed_row(tx, number)
        if row is None:
            raise model.NotFound
    if copy is not None:
        _log_change(principal, row)
    return _shown(row)


def _number(row_id: str) -> int:
    """A text that no row has for its id names nothing."""
    is_number = row_id.isascii() and row_id.isdecimal() and len(row_id) <= len(str(LAST_ID))
    if not is_number or int(row_id) > LAST_ID:
        raise model.NotFound
    return int(row_id)


def _check_operator(deps: Deps, principal: Principal) -> None:
    """Users are operators in an internal organization only; of service accounts the scope decides."""
    if principal.kind is Kind.USER and principal.organization_id not in deps.internal_organizations:
        raise model.NotInternal


def _log_change(principal: Principal, row: FailedRow) -> None:
    """Like every change of the platform itself: it is in no organization's audit log."""
    actor = {"actor_type": str(principal.kind), "actor_id": principal.id}
    log.info("platform_change", type="outbox_row.redriven", target=row.id, redriven_as=row.redriven_as, **actor)


def _shown(row: FailedRow) -> model.FailedRow:
    """Without the payload, of which only the ids that say whom it is about are shown."""
    return model.FailedRow(
        row.id,
        row.event_id,
        row.event_type,
        row.payload.get("organization_id"),
        row.payload.get("account_id"),
        row.payload.get("credential_id"),
        row.attempts,
        row.last_error,
        cause_of(row.last_error) if row.last_error else None,
        row.created_at,
        row.failed_at,
        row.redriven_as,
    )
