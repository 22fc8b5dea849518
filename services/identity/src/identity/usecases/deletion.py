"""Deleting a user: at the provider, then here, so that a crash anywhere between is finished by the scheduler.

    begun here -> deleted at the provider -> marked and published here

Until the mark the user is a user: a deletion that only began can be requested again. Once the provider has deleted, the
note of the beginning is what the scheduler finds. So only an attempt that found no note may take its own back: an
attempt before or beside it may have succeeded without an answer.
"""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

from chassis import crashpoints, logs, tenancy
from chassis.principals import Principal
from chassis.worker.outage import outage_as
from identity import model
from identity.audit import Change
from identity.providers import NotDeleted, Unconfirmed
from identity.store import people as store
from identity.usecases.deps import Deps

log = logs.get(__name__)

# Longer than a provider usually takes. With a slower one the scheduler runs beside the request, which changes nothing:
# deleting twice is safe, only one of them publishes the event, and neither can withdraw what the other has begun.
ABANDONED_AFTER = timedelta(seconds=10)


def delete_user(deps: Deps, principal: Principal) -> None:
    """Delete the caller. When the provider certainly has not, nothing changes."""
    user, begun_at = _begin(deps, principal)
    crashpoints.reach("identity.deletion_begun")
    try:
        deps.provider.delete_user(user.subject)
    except NotDeleted:
        crashpoints.reach("identity.deletion_refused")
        _withdraw(deps, user.id, begun_at)
        return
    except Unconfirmed:
        raise model.DeletionUnconfirmed from None
    crashpoints.reach("identity.deleted_at_provider")
    with outage_as(model.DeletionUnconfirmed):  # the note of the beginning stays: the scheduler finishes it
        _finish(deps, user)
    crashpoints.reach("identity.deletion_finished")


def finish_deletions(deps: Deps, abandoned_after: timedelta = ABANDONED_AFTER) -> int:
    """Finish what a crash or a silent provider left; how many were finished. One that fails waits for its next turn."""
    finished = 0
    while user := _take(deps, abandoned_after):
        try:
            deps.provider.delete_user(user.subject)
        except (NotDeleted, Unconfirmed) as error:
            log.warning("deletion_not_finished", user_id=str(user.id), error=type(error).__name__)
            break
        _finish(deps, user)
        finished += 1
    return finished


def _begin(deps: Deps, principal: Principal) -> tuple[model.User, datetime | None]:
    with deps.engine.begin() as tx:
        user = store.ensure_user(tx, uuid4(), deps.provider.name, principal.id)
        return user, store.begin_deletion(tx, user.id)


def _withdraw(deps: Deps, user_id: UUID, begun_at: datetime | None) -> None:
    """After a refusal: raise what is true of the user now, or return if another attempt has deleted them meanwhile."""
    with outage_as(model.DeletionUnconfirmed), deps.engine.begin() as tx:
        withdrawn = begun_at is not None and store.withdraw_deletion(tx, user_id, begun_at)
        deleted = store.is_deleted(tx, user_id)
    if withdrawn:
        raise model.ProviderUnavailable
    if not deleted:
        raise model.DeletionUnconfirmed


def _take(deps: Deps, abandoned_after: timedelta) -> model.User | None:
    with deps.engine.begin() as tx:
        return store.take_unfinished_deletion(tx, abandoned_after)


def _finish(deps: Deps, user: model.User) -> None:
    """Mark and publish in one transaction; published once, however many finish it."""
    with tenancy.serving_all(), deps.outbox.begin() as tx:
        if store.mark_deleted(tx, user.id):
            ended = store.end_memberships(tx, user.id)
            deps.record_deletion(tx, user, [Change("user.deleted", where, user.subject, was) for where, was in ended])
