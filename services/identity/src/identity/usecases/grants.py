"""What people let clients do for them: authorization codes, device codes, and the tokens that come of them.

Everything that one consent leads to is one family. Whatever is shown a second time although it can be used only once
was stolen from somebody, so its family ends (RFC 9700 §4.14.2).
"""

import secrets
from collections.abc import Callable
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chassis import db, keys, tenancy
from identity import model_login
from identity.store import token_families as store
from identity.usecases.deps import Deps
from identity.usecases.tokens import issue_token

_SLOWER_S = 5  # RFC 8628 §3.5
Spend = Callable[[Connection], bool]


def find_client(deps: Deps, client_id: str) -> model_login.Client | None:
    if client_id == model_login.COMMAND_LINE.client_id:
        return model_login.COMMAND_LINE
    with db.reading(deps.engine) as tx:
        return store.find_client(tx, client_id)


def put_client(deps: Deps, client: model_login.Client) -> None:
    """Register a client, or change the one of this id."""
    model_login.check_redirect_uris(client.redirect_uris)
    with deps.engine.begin() as tx:
        store.put_client(tx, client)


def list_choices(deps: Deps, session: model_login.Session) -> list[model_login.OrganizationChoice]:
    """The organizations that the person may let a client act for."""
    with tenancy.serving_all(), db.reading(deps.engine) as tx:
        return store.choices(tx, session.user_id)


def authorize_client(
    deps: Deps, session: model_login.Session, organization_id: UUID | None, new: model_login.NewAuthorizationCode
) -> str:
    """The authorization code of a new family."""
    code = secrets.token_urlsafe(32)
    with tenancy.serving_all(), deps.engine.begin() as tx:
        family_id = _new_family(tx, session, new.client_id, organization_id)
        lifetime = model_login.AUTHORIZATION_CODE_LIFETIME
        store.add_authorization_code(tx, keys.digest(code), family_id, new, lifetime)
    return code


def find_authorization_code(deps: Deps, client_id: str, code: str) -> model_login.AuthorizationCode | None:
    """The code as long as it counts. One that is shown again ends its family."""
    with deps.engine.begin() as tx:
        found = store.find_authorization_code(tx, keys.digest(code))
        if found is None or found.client_id != client_id:
            return None
        if found.spent:
            store.revoke(tx, found.family_id)
    return None if found.spent or found.expired else found


def exchange_authorization_code(deps: Deps, code: model_login.AuthorizationCode) -> model_login.IssuedTokens | None:
    return _issue(deps, code.family_id, lambda tx: store.spend_authorization_code(tx, code.digest))


def begin_device(deps: Deps, client_id: str, device_code: str, user_code: str) -> bool:
    """Whether the user code was free."""
    digests = keys.digest(device_code), keys.digest(model_login.written_code(user_code))
    with deps.engine.begin() as tx:
        return store.add_device_code(
            tx, *digests, client_id, model_login.DEVICE_CODE_LIFETIME, model_login.DEVICE_INTERVAL_S
        )


def find_device(deps: Deps, user_code: str) -> model_login.Client | None:
    """The client of the device that shows this code and waits for a decision."""
    with deps.engine.begin() as tx:
        found = _undecided(tx, user_code)
    return find_client(deps, found.client_id) if found else None


def decide_device(
    deps: Deps, session: model_login.Session, user_code: str, organization_id: UUID | None, *, allowed: bool
) -> bool:
    """Whether a device was waiting for this decision."""
    with tenancy.serving_all(), deps.engine.begin() as tx:
        found = _undecided(tx, user_code)
        if found is None:
            return False
        family_id = _new_family(tx, session, found.client_id, organization_id) if allowed else None
        store.decide_device_code(tx, found.digest, family_id)
    return True


def _undecided(tx: Connection, user_code: str) -> model_login.DeviceCode | None:
    found = store.lock_device_code(tx, keys.digest(model_login.written_code(user_code)))
    return None if found is None or found.expired or found.denied or found.family_id else found


def poll_device(deps: Deps, device_code: str) -> model_login.DeviceCode | None:
    with deps.engine.begin() as tx:
        return store.poll_device_code(tx, keys.digest(device_code), _SLOWER_S)


def exchange_device_code(deps: Deps, code: model_login.DeviceCode) -> model_login.IssuedTokens | None:
    if code.family_id is None:
        return None
    return _issue(deps, code.family_id, lambda tx: store.spend_device_code(tx, code.digest))


def refresh(deps: Deps, client_id: str, token: str) -> model_login.IssuedTokens | None:
    """New tokens for a refresh token, which is spent by this."""
    family_id = _family_of(deps, client_id, token)
    if family_id is None:
        return None
    return _issue(deps, family_id, lambda tx: store.spend_refresh_token(tx, keys.digest(token)))


def revoke(deps: Deps, client_id: str, token: str) -> None:
    """End the family of a refresh token, if it is one of this client's."""
    family_id = _family_of(deps, client_id, token)
    if family_id is not None:
        with deps.engine.begin() as tx:
            store.revoke(tx, family_id)


def _family_of(deps: Deps, client_id: str, token: str) -> UUID | None:
    with db.reading(deps.engine) as tx:
        found = store.family_of_refresh_token(tx, keys.digest(token))
    return found[0] if found and found[1] == client_id else None


def _issue(deps: Deps, family_id: UUID, spend: Spend) -> model_login.IssuedTokens | None:
    """Spend what was shown and issue the next tokens, in one transaction. None: there is nothing to be had for it."""
    refresh_token = secrets.token_urlsafe(32)
    with tenancy.serving_all(), deps.engine.begin() as tx:
        family = store.lock(tx, family_id)
        if not spend(tx):
            store.revoke(tx, family_id)
            return None
        chosen = _choice(tx, family)
        if family is None or chosen is None:
            return None
        store.add_refresh_token(tx, keys.digest(refresh_token), family_id)
    return _tokens(deps, family, chosen, refresh_token)


def _choice(tx: Connection, family: model_login.Family | None) -> model_login.OrganizationChoice | None:
    """The family's organization, while the person belongs to it and has shown what it requires."""
    if family is None or not family.active:
        return None
    chosen = _chosen(tx, family.user_id, family.organization_id)
    return None if chosen is None or (chosen.totp_required and not family.totp) else chosen


def _tokens(
    deps: Deps, family: model_login.Family, chosen: model_login.OrganizationChoice, refresh_token: str
) -> model_login.IssuedTokens:
    claims = {
        "sub": family.subject,
        "principal_type": "user",
        "org_id": chosen.external_id,
        "client_id": family.client_id,
    }
    lifetime_s = min(deps.user_token_lifetime_s, deps.signer.lifetime_s)
    return model_login.IssuedTokens(issue_token(deps, claims, lifetime_s=lifetime_s), refresh_token, lifetime_s)


def _new_family(tx: Connection, session: model_login.Session, client_id: str, organization_id: UUID | None) -> UUID:
    """Only for an organization of the person, and only with the second factor where it requires one."""
    chosen = _chosen(tx, session.user_id, organization_id)
    if chosen is None:
        raise model_login.NoMembership
    if chosen.totp_required and not session.totp:
        raise model_login.TotpRequired
    family_id = uuid4()
    store.add(tx, family_id, client_id, session, chosen.id, model_login.FAMILY_LIFETIME)
    return family_id


def _chosen(tx: Connection, user_id: UUID, organization_id: UUID | None) -> model_login.OrganizationChoice | None:
    return next((choice for choice in store.choices(tx, user_id) if choice.id == organization_id), None)
