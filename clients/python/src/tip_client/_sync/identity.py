# Made from _async/identity.py by generate.py; `make client` makes it anew.
"""Organizations, their members, keys, service accounts and entitlements, and who calls."""

from collections.abc import Iterator, Iterable
from datetime import datetime
from functools import partial

from tip_client._sync.scope import Scope
from tip_client.models.identity import (
    ApiKey,
    AuditEntry,
    Caller,
    CreatedApiKey,
    CreatedInvitation,
    CreatedServiceAccount,
    CurrentUser,
    Entitlement,
    Invitation,
    KeyBounds,
    KeyValidation,
    Member,
    Membership,
    Organization,
    ServiceAccount,
    Token,
)
from tip_client.records import parse
from tip_client.request import Repeat, Request, ask, at, change, create, delete, get, given, listed
from tip_client.words import Environment, Role


class Me(Scope):
    """Whoever calls."""

    def read(self) -> Caller:
        """What this credential may do."""
        return self._http.call(get("/v1/auth/self", Caller))

    def user(self) -> CurrentUser:
        """The user who calls, with their memberships."""
        return self._http.call(get("/v1/users/me", CurrentUser))

    def delete_user(self) -> None:
        """Delete the user who calls, for ever."""
        self._http.call(Request("DELETE", "/v1/users/me", lambda _answer: None, repeat=Repeat.NEVER))

    def accept_invitation(self, code: str) -> Membership:
        """Become a member of the organization that has invited the user who calls."""
        return self._http.call(create("/v1/invitations/accept", Membership, {"code": code}))

    def leave(self, organization_id: str) -> None:
        """End the membership of the user who calls; the last admin of an organization cannot."""
        self._http.call(delete(at("/v1/users/me/memberships/{}", organization_id)))

    def validate_key(self, key: str) -> KeyValidation:
        """What an API key is; it needs no other credential."""
        return self._http.call(ask("/api/v1/auth/api-key/validate", KeyValidation, {"api_key": key}))

    def token(self, client_id: str, client_secret: str, *, scope: str | None = None) -> Token:
        """A bearer token for a service account: client credentials of OAuth 2."""
        proof = {"client_id": client_id, "client_secret": client_secret}
        form = {"grant_type": "client_credentials", **proof, **given(scope=scope)}
        return self._http.call(Request("POST", "/oauth/token", partial(parse, Token), form=form))


class Organizations(Scope):
    """Organizations, their members and entitlements."""

    def list(self, *, page_size: int | None = None) -> Iterator[Organization]:
        for found in self._http.pages(listed("/v1/organizations", Organization, page_size)):
            yield found

    def read(self, organization_id: str) -> Organization:
        return self._http.call(get(at("/v1/organizations/{}", organization_id), Organization))

    def by_provider(self, provider: str, external_id: str) -> Organization:
        """An organization by its identity provider's id."""
        path = at("/v1/organizations/by-provider/{}/{}", provider, external_id)
        return self._http.call(get(path, Organization))

    def create(self, external_id: str, name: str) -> Organization:
        body = {"external_id": external_id, "name": name}
        return self._http.call(create("/v1/organizations", Organization, body))

    def change(
        self,
        organization_id: str,
        *,
        name: str | None = None,
        disabled: bool | None = None,
        totp_required: bool | None = None,
    ) -> Organization:
        """Rename, disable or enable it, or require a second factor of its people."""
        path = at("/v1/organizations/{}", organization_id)
        body = given(name=name, disabled=disabled, totp_required=totp_required)
        return self._http.call(change("PATCH", path, Organization, body))

    def members(self, organization_id: str, *, page_size: int | None = None) -> Iterator[Member]:
        path = at("/v1/organizations/{}/memberships", organization_id)
        for member in self._http.pages(listed(path, Member, page_size)):
            yield member

    def member(self, organization_id: str, subject: str) -> Member:
        path = at("/v1/organizations/{}/memberships/{}", organization_id, subject)
        return self._http.call(get(path, Member))

    def put_member(self, organization_id: str, subject: str, role: Role | str) -> Member:
        """Make somebody a member, or change their role; `subject` is the provider's id of the user."""
        path = at("/v1/organizations/{}/memberships/{}", organization_id, subject)
        return self._http.call(change("PUT", path, Member, {"role": role}))

    def remove_member(self, organization_id: str, subject: str) -> None:
        self._http.call(delete(at("/v1/organizations/{}/memberships/{}", organization_id, subject)))

    def invite(self, organization_id: str, subject: str, role: Role | str) -> CreatedInvitation:
        """Invite somebody; the answer is the only place that ever holds the code. An earlier one is replaced."""
        path = at("/v1/organizations/{}/invitations", organization_id)
        return self._http.call(create(path, CreatedInvitation, {"subject": subject, "role": role}))

    def invitations(self, organization_id: str, *, page_size: int | None = None) -> Iterator[Invitation]:
        """Those that are open."""
        path = at("/v1/organizations/{}/invitations", organization_id)
        for invitation in self._http.pages(listed(path, Invitation, page_size)):
            yield invitation

    def invitation(self, organization_id: str, invitation_id: str) -> Invitation:
        path = at("/v1/organizations/{}/invitations/{}", organization_id, invitation_id)
        return self._http.call(get(path, Invitation))

    def revoke_invitation(self, organization_id: str, invitation_id: str) -> None:
        self._http.call(delete(at("/v1/organizations/{}/invitations/{}", organization_id, invitation_id)))

    def entitlements(self, organization_id: str, *, page_size: int | None = None) -> Iterator[Entitlement]:
        path = at("/v1/organizations/{}/entitlements", organization_id)
        for entitlement in self._http.pages(listed(path, Entitlement, page_size)):
            yield entitlement

    def entitlement(self, organization_id: str, name: str) -> Entitlement:
        path = at("/v1/organizations/{}/entitlements/{}", organization_id, name)
        return self._http.call(get(path, Entitlement))

    def put_entitlement(self, organization_id: str, name: str, *, expires_at: datetime | None = None) -> Entitlement:
        """Entitle an organization, for ever or until a moment."""
        path = at("/v1/organizations/{}/entitlements/{}", organization_id, name)
        return self._http.call(change("PUT", path, Entitlement, given(expires_at=expires_at)))

    def remove_entitlement(self, organization_id: str, name: str) -> None:
        self._http.call(delete(at("/v1/organizations/{}/entitlements/{}", organization_id, name)))

    def audit_entries(
        self,
        organization_id: str,
        *,
        type_: str | None = None,
        target: str | None = None,
        actor: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        page_size: int | None = None,
    ) -> Iterator[AuditEntry]:
        """Who changed what about the organization, its people, keys and entitlements, newest first."""
        path = at("/v1/organizations/{}/audit-entries", organization_id)
        wanted = given(type_=type_, target=target, actor=actor, from_=from_, to=to)
        for entry in self._http.pages(listed(path, AuditEntry, page_size, **wanted)):
            yield entry

    def export_audit_entries(
        self, organization_id: str, *, from_: datetime | None = None, to: datetime | None = None
    ) -> Iterator[bytes]:
        """The audit log as JSON lines, oldest first, in pieces to be written one after the other."""
        path = at("/v1/organizations/{}/audit-entries/export", organization_id)
        query = {name: str(value) for name, value in given(from_=from_, to=to).items()}
        settings = self._http.settings
        with self._http.streamed(settings.url.rstrip("/") + path, query, {}, settings.timeout) as answer:
            for chunk in answer.iter_bytes():
                yield chunk


class Keys(Scope):
    """API keys of the organization."""

    def list(self, *, page_size: int | None = None) -> Iterator[ApiKey]:
        for key in self._http.pages(listed("/v1/api-keys", ApiKey, page_size)):
            yield key

    def create(
        self,
        name: str,
        *,
        environment: Environment | str,
        permissions: Iterable[str],
        expires_at: datetime | None = None,
        bounds: KeyBounds | None = None,
    ) -> CreatedApiKey:
        """Create an API key; the answer is the only place that ever holds it."""
        about = given(expires_at=expires_at, bounds=bounds and given(**vars(bounds)))
        body = {"name": name, "environment": environment, "permissions": [*permissions], **about}
        return self._http.call(create("/v1/api-keys", CreatedApiKey, body))

    def read(self, key_id: str) -> ApiKey:
        return self._http.call(get(at("/v1/api-keys/{}", key_id), ApiKey))

    def change(
        self,
        key_id: str,
        *,
        name: str | None = None,
        permissions: Iterable[str] | None = None,
        disabled: bool | None = None,
        expires_at: datetime | None = None,
        bounds: KeyBounds | None = None,
    ) -> ApiKey:
        """Rename, disable, enable, limit or extend a key. Bounds replace the former; `KeyBounds()` removes them."""
        permitted = None if permissions is None else [*permissions]
        body = given(name=name, permissions=permitted, disabled=disabled, expires_at=expires_at)
        if bounds is not None:
            body["bounds"] = given(**vars(bounds)) or None
        return self._http.call(change("PATCH", at("/v1/api-keys/{}", key_id), ApiKey, body))

    def delete(self, key_id: str) -> None:
        self._http.call(delete(at("/v1/api-keys/{}", key_id)))


class ServiceAccounts(Scope):
    """Service accounts, for operators."""

    def list(self, *, page_size: int | None = None) -> Iterator[ServiceAccount]:
        for found in self._http.pages(listed("/v1/service-accounts", ServiceAccount, page_size)):
            yield found

    def create(self, name: str, scopes: Iterable[str]) -> CreatedServiceAccount:
        """Create a service account; the answer is the only place that ever holds its secret."""
        body = {"name": name, "scopes": [*scopes]}
        return self._http.call(create("/v1/service-accounts", CreatedServiceAccount, body))

    def read(self, client_id: str) -> ServiceAccount:
        return self._http.call(get(at("/v1/service-accounts/{}", client_id), ServiceAccount))

    def change(
        self,
        client_id: str,
        *,
        name: str | None = None,
        scopes: Iterable[str] | None = None,
        disabled: bool | None = None,
    ) -> ServiceAccount:
        """Rename, disable, enable it or change its scopes."""
        granted = None if scopes is None else [*scopes]
        body = given(name=name, scopes=granted, disabled=disabled)
        return self._http.call(change("PATCH", at("/v1/service-accounts/{}", client_id), ServiceAccount, body))

    def rotate_secret(self, client_id: str) -> CreatedServiceAccount:
        """Replace the secret; the answer is the only place that ever holds the new one."""
        path = at("/v1/service-accounts/{}/secret", client_id)
        return self._http.call(create(path, CreatedServiceAccount))

    def delete(self, client_id: str) -> None:
        self._http.call(delete(at("/v1/service-accounts/{}", client_id)))
