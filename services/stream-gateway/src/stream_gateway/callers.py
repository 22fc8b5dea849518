"""Who reads a stream: the same callers as may read intents, verified again for as long as the stream is open."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from chassis import access, authentication, problems, tokens
from chassis.authentication import Access, PresentedCredentials
from chassis.callers import split_authorization
from chassis.principals import ANY_ROLE, Principal, api_key, service_account, user
from stream_gateway import store
from stream_gateway.model import CredentialEnded, Ending, PermissionEnded

PERMISSION = "intent:read"
READERS = (user(*ANY_ROLE), api_key(PERMISSION), service_account(PERMISSION))
_BEARER = "bearer"


@dataclass(frozen=True)
class Caller:
    """An admitted caller, with its token if it has one. The token itself and the API key are not kept."""

    principal: Principal
    token: tokens.VerifiedToken | None = field(default=None, repr=False)

    @property
    def name(self) -> tuple[str, str]:
        """What its streams are counted by."""
        return self.principal.kind, self.principal.id

    @property
    def credential(self) -> Hashable:
        """What is verified again: one key, or one token in one organization, whatever else its requests contain.

        A key whose accounts were changed is another one: its earlier streams were opened by what it was.
        """
        principal = self.principal
        return *self.name, self.token and self.token.digest, principal.organization_id, principal.bounds.accounts

    @property
    def expires_at(self) -> float | None:
        """When its token does, in seconds of the epoch."""
        return float(self.token.claims["exp"]) if self.token else None


def admit(auth: Access, presented: PresentedCredentials, now: float) -> Caller:
    """The caller, if it may read intents at all; else raises the problem."""
    principal = authentication.identify(auth, presented)
    auth.rate_limit.count(f"{principal.kind}:{principal.id}")
    access.decide(principal, READERS, 403)
    caller = Caller(principal, _token(auth, presented))
    # The leeway for wrong clocks is for requests; a stream would end with the token in the same moment.
    if caller.expires_at is not None and caller.expires_at <= now:
        raise problems.unauthenticated()
    return caller


def _token(auth: Access, presented: PresentedCredentials) -> tokens.VerifiedToken | None:
    [(kind, value)] = presented.credentials
    if kind != _BEARER:
        return None
    try:
        return auth.verifier.verify(split_authorization(value)[1])
    except tokens.BadToken:  # it was good a moment ago
        raise problems.unauthenticated() from None


Endings = list[Ending | None]
"""For each caller: why its streams must end, or None."""


def recheck_keys(_auth: Access, tx: Connection, callers: Sequence[Caller]) -> Endings:
    """One read for all of them."""
    found = store.usable_keys(tx, [UUID(caller.principal.id) for caller in callers])

    def ending(caller: Caller) -> Ending | None:
        """A stream of a key whose accounts are other ones now may be of one that it no longer sees: it begins anew."""
        now = found.get(UUID(caller.principal.id))
        if now is None:
            return CredentialEnded()
        unchanged = now.bounds.accounts == caller.principal.bounds.accounts
        return None if PERMISSION in now.permissions and unchanged else PermissionEnded()

    return [ending(caller) for caller in callers]


def recheck_users(auth: Access, tx: Connection, callers: Sequence[Caller]) -> Endings:
    """One read for all of them, and no signature: it cannot have changed, only the key may have been withdrawn."""
    named = [(caller.principal.id, auth.users.organization(_claims(caller))) for caller in callers]
    rows = store.users(tx, auth.provider, named)
    return [
        _ending(auth, caller, authentication.user_principal(auth, rows[name], _claims(caller)))
        for caller, name in zip(callers, named, strict=True)
    ]


def recheck_service_accounts(auth: Access, tx: Connection, callers: Sequence[Caller]) -> Endings:
    """One read for all of them, whatever organizations they name."""
    named = [(caller.principal.id, caller.principal.organization_id) for caller in callers]
    rows = store.service_accounts(tx, named)
    found = [rows.get(name) for name in named]
    return [
        _ending(auth, caller, authentication.service_account_principal(row, _claims(caller)) if row else None)
        for caller, row in zip(callers, found, strict=True)
    ]


def _claims(caller: Caller) -> Mapping[str, Any]:
    return caller.token.claims if caller.token else {}


def _ending(auth: Access, caller: Caller, principal: Principal | None) -> Ending | None:
    if principal is None or caller.token is None or not auth.verifier.is_current(caller.token):
        return CredentialEnded()
    try:
        access.decide(principal, READERS, 403)
    except problems.Problem:
        return PermissionEnded()
    return None if principal.organization_id == caller.principal.organization_id else PermissionEnded()
