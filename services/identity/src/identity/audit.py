"""The audit log's words: a change, who made it, and the entry that remains of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from chassis.fields import rfc3339
from chassis.principals import Principal
from identity import model, model_login

Value = Mapping[str, Any]

# What an entry says of each thing: only what the API shows of it too, and never the key, the secret or a digest.
_PUBLIC: Mapping[type, tuple[str, ...]] = {
    model.Organization: ("external_id", "name", "provider", "disabled", "totp_required"),
    model.Member: ("role",),
    model.Standing: ("role",),
    model.Entitlement: ("expires_at",),
    model.Invitation: ("role", "expires_at"),
    model.ApiKey: ("name", "environment", "permissions", "prefix", "disabled", "expires_at", "bounds"),
    model.ServiceAccount: ("name", "scopes", "disabled"),
    model_login.SignIn: ("method", "second_factor"),
    model_login.Reset: ("second_factor_removed",),
}


SIGNED_IN, LOGIN_RESET = "login.signed_in", "login.reset"
LOGIN_TYPES = (SIGNED_IN, LOGIN_RESET)
"""In the log of every organization of the person; they are no events, because nobody has to act upon them."""


class Actor(NamedTuple):
    """Who made a change: user, service_account or system."""

    type: str
    id: str


BY_HAND = Actor("system", "by-hand")
"""An operator with access to the platform itself: `python -m identity.admin`, or the demo data."""


def actor_of(principal: Principal | None) -> Actor:
    """Without a principal the change is made by hand."""
    return Actor(str(principal.kind), principal.id) if principal else BY_HAND


@dataclass(frozen=True)
class Change:
    """`before` and `after` are the thing that changes, None where there is none; `target` is what it is called by."""

    type: str
    organization_id: UUID | None
    target: str
    before: object = None
    after: object = None

    @property
    def values(self) -> tuple[Value | None, Value | None]:
        """What the entry says: all of a thing that is new or gone, else the fields that differ."""
        before, after = _public(self.before), _public(self.after)
        if before is None or after is None:
            return before, after
        differing = [name for name in before if before[name] != after[name]]
        return {name: before[name] for name in differing}, {name: after[name] for name in differing}

    @property
    def is_void(self) -> bool:
        """Whether the thing is as it was: a PUT of what is there already."""
        return self.values == ({}, {})


@dataclass(frozen=True)
class Entry:
    """One line of the log; `sequence` counts those of one organization without a gap."""

    organization_id: UUID
    sequence: int
    type: str
    target: str
    value_before: Value | None
    value_after: Value | None
    actor: Actor
    request_id: str | None
    created_at: datetime


@dataclass(frozen=True)
class Filter:
    """Which entries are wanted; None: whatever it is. `since` is part of the period, `to` is not."""

    type: str | None = None
    target: str | None = None
    actor: str | None = None
    since: datetime | None = None
    to: datetime | None = None


def _public(thing: object) -> Value | None:
    return None if thing is None else {name: _plain(getattr(thing, name)) for name in _PUBLIC[type(thing)]}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, model.Bounds):
        return value.as_json
    return list(value) if isinstance(value, tuple) else value
