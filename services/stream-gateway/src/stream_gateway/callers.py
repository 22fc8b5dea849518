"""Who reads a stream: the same callers as may read intents, looked at again for as long as the stream is open."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from chassis import access, problems, tokens
from chassis.access import Access, Presented
from chassis.principals import ANY_ROLE, Kind, Principal, api_key, service_account, user
from stream_gateway import store
from stream_gateway.model import CredentialEnded, Ending, PermissionEnded

PERMISSION = "intent:read"
READERS = (user(*ANY_ROLE), api_key(PERMISSION), service_account(PERMISSION))
_BEARER = "bearer"


@dataclass(frozen=True)
class Caller:
    """An admitted caller. `expires_at` is when its token does, in seconds of the epoch."""

    principal: Principal
    presented: Presented = field(repr=False)
    expires_at: float | None = None

    @property
    def name(self) -> tuple[str, str]:
        """What its streams are counted by."""
        return self.principal.kind, self.principal.id


def admit(door: Access, presented: Presented, now: float) -> Caller:
    """The caller, if it may read intents at all; else raises the problem."""
    principal = access.identify(door, presented)
    door.rate_limit.count(f"{principal.kind}:{principal.id}")
    access.decide(principal, READERS, 403)
    expires_at = _expiry(door, presented)
    # The leeway for wrong clocks is for requests; a stream would end with the token in the same moment.
    if expires_at is not None and expires_at <= now:
        raise problems.unauthenticated()
    return Caller(principal, presented, expires_at)


def _expiry(door: Access, presented: Presented) -> float | None:
    [(kind, value)] = presented.credentials
    if kind != _BEARER:
        return None
    try:
        return float(door.verifier.claims(_token(value))["exp"])
    except tokens.BadToken:  # it was good a moment ago
        raise problems.unauthenticated() from None


def _token(authorization: str) -> str:
    return authorization.partition(" ")[2].strip()


def recheck(door: Access, callers: Iterable[Caller]) -> dict[Presented, Ending]:
    """Those whose streams must end, and why. One read for all API keys, one for each token."""
    callers = list(callers)
    with door.engine.connect() as connection:
        keys = [UUID(caller.principal.id) for caller in callers if caller.principal.kind is Kind.API_KEY]
        usable = store.usable_keys(connection, keys) if keys else {}
    endings = {caller.presented: _ending(door, caller, usable) for caller in callers}
    return {presented: ending for presented, ending in endings.items() if ending}


def _ending(door: Access, caller: Caller, usable: Mapping[UUID, frozenset[str]]) -> Ending | None:
    if caller.principal.kind is not Kind.API_KEY:
        return _ending_of_token(door, caller)
    permissions = usable.get(UUID(caller.principal.id))
    if permissions is None:
        return CredentialEnded()
    return None if PERMISSION in permissions else PermissionEnded()


def _ending_of_token(door: Access, caller: Caller) -> Ending | None:
    [(_, value)] = caller.presented.credentials
    try:
        principal = access.from_bearer(door, _token(value), caller.presented.organization)
    except tokens.KeysUnavailable:
        return None  # nothing is known about any token, so nothing about this one
    if principal is None:
        return CredentialEnded()
    try:
        access.decide(principal, READERS, 403)
    except problems.Problem:
        return PermissionEnded()
    return None if principal.organization_id == caller.principal.organization_id else PermissionEnded()
