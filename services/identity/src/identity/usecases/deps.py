"""What every use case works with, and how it publishes events."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine

from chassis.outbox import Event, Outbox
from chassis.principals import Kind, Principal
from identity import model
from identity.providers import Provider
from identity.signing import Signer


@dataclass(frozen=True)
class Deps:
    engine: Engine
    outbox: Outbox
    signer: Signer
    provider: Provider
    limits: model.Limits

    def append_event(self, tx: Connection, event_type: str, ordering_key: object, **ids: object) -> None:
        """Append an event to the outbox; those with one ordering key are published in order."""
        payload: Mapping[str, Any] = {name: str(value) for name, value in ids.items()}
        self.outbox.append(tx, Event(event_type, payload, ordering_key=str(ordering_key)))


def see_organization(principal: Principal, organization_id: UUID) -> None:
    """A user sees the organization of the token; service accounts see every one."""
    if principal.kind is Kind.USER and principal.organization_id != organization_id:
        raise model.NotFound
