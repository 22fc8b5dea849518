"""What every use case works with, and how it records a change."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Engine

from chassis import logs, tracing
from chassis.outbox import Event, Outbox
from chassis.principals import Kind, Principal
from identity import audit, model
from identity.providers import Provider
from identity.signing import Signer
from identity.store import audit_entries, people

log = logs.get(__name__)


@dataclass(frozen=True)
class Deps:
    engine: Engine
    outbox: Outbox
    signer: Signer
    provider: Provider
    limits: model.Limits
    user_token_lifetime_s: int = 600

    def record_change(self, tx: Connection, principal: Principal | None, change: audit.Change, **ids: object) -> None:
        """Publish the change and enter it into the audit log; nothing in identity does one without the other.

        What belongs to no organization is in the service's own log. A change that changes nothing is not recorded.
        """
        if change.is_void:
            return
        organization = {"organization_id": change.organization_id} if change.organization_id else {}
        self._append_event(tx, change.type, change.organization_id or change.target, **organization, **ids)
        actor = audit.actor_of(principal)
        if change.organization_id:
            audit_entries.append(tx, change, actor, _request_id())
        else:
            log.info(
                "platform_change", type=change.type, target=change.target, actor_type=actor.type, actor_id=actor.id
            )

    def record_deletion(self, tx: Connection, user: model.User, memberships: Iterable[audit.Change]) -> None:
        """One event, and an entry in each organization that the user belonged to: they did it themselves."""
        ids = {"user_id": user.id, "provider": user.provider, "subject": user.subject}
        self._append_event(tx, "user.deleted", user.id, **ids)
        for change in memberships:
            audit_entries.append(tx, change, audit.Actor(str(Kind.USER), user.subject), _request_id())

    def record_login(self, tx: Connection, user_id: UUID, type_: str, after: object, *, by_hand: bool = False) -> None:
        """An entry in each organization that the user belongs to, and in none that they have left."""
        subject = people.subject_of(tx, user_id)
        actor = audit.BY_HAND if by_hand else audit.Actor(str(Kind.USER), subject)
        for organization_id in people.organizations_of(tx, user_id):
            audit_entries.append(tx, audit.Change(type_, organization_id, subject, None, after), actor, _request_id())

    def _append_event(self, tx: Connection, event_type: str, ordering_key: object, **ids: object) -> None:
        """Events with one ordering key are published in order."""
        payload = {name: str(value) for name, value in ids.items()}
        self.outbox.append(tx, Event(event_type, payload, ordering_key=str(ordering_key)))


def see_organization(principal: Principal, organization_id: UUID) -> None:
    """A user sees the organization of the token; service accounts see every one."""
    if principal.kind is Kind.USER and principal.organization_id != organization_id:
        raise model.NotFound


def _request_id() -> str | None:
    trace = tracing.current.get()
    return trace.request_id if trace else None
