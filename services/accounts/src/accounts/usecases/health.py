"""The health of the outbox, for whoever runs the platform."""

from sqlalchemy.exc import SQLAlchemyError

from accounts import model
from accounts.usecases.deps import Deps
from chassis import logs
from chassis.principals import Kind, Principal

log = logs.get(__name__)


def outbox_health(deps: Deps, principal: Principal) -> model.Health:
    """The whole queue across all organizations; users see it only from an internal organization."""
    if principal.kind is Kind.USER and principal.organization_id not in deps.internal_organizations:
        raise model.NotInternal
    try:
        entries = deps.outbox.report()
    except SQLAlchemyError as error:
        log.error("outbox_health_unreadable", error=type(error).__name__)
        raise model.QueueUnreadable from error
    return model.Health(tuple(model.HealthEntry(**vars(entry)) for entry in entries))
