"""What the matrix of callers acts on: two organizations, and a request for every endpoint."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from chassis.principals import Kind, Principal, Role
from identity import model, usecases
from tip_testing.identity_fixtures import IdentityFixtures, Organization


@dataclass
class Stage:
    """Two organizations, and a thing of each kind to act on, made anew where acting uses it up."""

    identity: IdentityFixtures
    own: Organization
    other: Organization
    callers: dict[str, dict[str, str]]
    operator: Any
    made: int = field(default=0)

    def organization(self, whose: str) -> Organization:
        return self.own if whose == "own" else self.other

    def new_member(self, whose: str) -> str:
        self.made += 1
        organization = self.organization(whose)
        subject = f"member-{self.made}"
        record = model.Organization(
            organization.id, organization.external_id, "", self.identity.provider, False, datetime.now(UTC)
        )
        usecases.put_member(self.identity.deps, record, subject, "member")
        return subject

    def new_invitation(self, whose: str) -> tuple[model.Invitation, str]:
        """An invitation of somebody who is no caller here, and its code."""
        self.made += 1
        organization = self.organization(whose)
        subject = self.identity.subject(organization.external_id, "admin")
        admin = Principal(Kind.USER, subject, organization.id, role=Role.ADMIN)
        invited = f"guest-{self.made}"
        return usecases.create_invitation(self.identity.deps, admin, organization.id, invited, "member")[:2]

    def invitation(self, whose: str) -> str:
        return f"{self.at(whose)}/invitations/{self.new_invitation(whose)[0].id}"

    def new_key(self, whose: str) -> str:
        new = model.NewApiKey("to act on", "paper", ("intent:read",))
        return str(usecases.create_key(self.identity.deps, self.organization(whose).id, new)[0].id)

    def new_service_account(self) -> str:
        return usecases.create_service_account(self.identity.deps, "to act on", ("intent:read",))[0].client_id

    def with_entitlement(self, whose: str) -> str:
        usecases.put_entitlement(self.identity.deps, self.organization(whose).id, "controls_premium")
        return f"{self.at(whose)}/entitlements/controls_premium"

    def without_entitlement(self, whose: str) -> str:
        path = self.with_entitlement(whose)
        usecases.remove_entitlement(self.identity.deps, self.organization(whose).id, "controls_premium")
        return path

    def at(self, whose: str) -> str:
        return f"/v1/organizations/{self.organization(whose).id}"

    def by_provider(self, whose: str, provider: str = "local") -> str:
        return f"/v1/organizations/by-provider/{provider}/{self.organization(whose).external_id}"


Request = tuple[str, str, Any]
ENDPOINTS: dict[str, Callable[[Stage, str], Request]] = {
    "validate": lambda s, w: ("POST", "/api/v1/auth/api-key/validate", {"api_key": s.own.api_keys["paper"]}),
    "self": lambda s, w: ("GET", "/v1/auth/self", None),
    "by_provider": lambda s, w: ("GET", s.by_provider(w), None),
    "by_unknown_provider": lambda s, w: ("GET", s.by_provider(w, "other-provider"), None),
    "delete_me": lambda s, w: ("DELETE", "/v1/users/me", None),
    "get_me": lambda s, w: ("GET", "/v1/users/me", None),
    "create_organization": lambda s, w: ("POST", "/v1/organizations", {"external_id": uuid4().hex, "name": "New"}),
    "list_organizations": lambda s, w: ("GET", "/v1/organizations", None),
    "get_organization": lambda s, w: ("GET", s.at(w), None),
    "change_organization": lambda s, w: ("PATCH", s.at(w), {"name": "Renamed"}),
    "list_members": lambda s, w: ("GET", f"{s.at(w)}/memberships", None),
    "get_member": lambda s, w: ("GET", f"{s.at(w)}/memberships/{s.new_member(w)}", None),
    "put_member": lambda s, w: ("PUT", f"{s.at(w)}/memberships/{uuid4().hex}", {"role": "member"}),
    "remove_member": lambda s, w: ("DELETE", f"{s.at(w)}/memberships/{s.new_member(w)}", None),
    "leave_organization": lambda s, w: ("DELETE", f"/v1/users/me/memberships/{s.organization(w).id}", None),
    "create_invitation": lambda s, w: (
        "POST",
        f"{s.at(w)}/invitations",
        {"subject": f"guest-{uuid4().hex}", "role": "member"},
    ),
    "list_invitations": lambda s, w: ("GET", f"{s.at(w)}/invitations", None),
    "get_invitation": lambda s, w: ("GET", s.invitation(w), None),
    "revoke_invitation": lambda s, w: ("DELETE", s.invitation(w), None),
    "accept_invitation": lambda s, w: ("POST", "/v1/invitations/accept", {"code": s.new_invitation(w)[1]}),
    "list_audit_entries": lambda s, w: ("GET", f"{s.at(w)}/audit-entries", None),
    "export_audit_entries": lambda s, w: ("GET", f"{s.at(w)}/audit-entries/export", None),
    "create_key": lambda s, w: (
        "POST",
        "/v1/api-keys",
        {"name": "New", "environment": "paper", "permissions": ["intent:edit"]},
    ),
    "list_keys": lambda s, w: ("GET", "/v1/api-keys", None),
    "get_key": lambda s, w: ("GET", f"/v1/api-keys/{s.new_key(w)}", None),
    "change_key": lambda s, w: ("PATCH", f"/v1/api-keys/{s.new_key(w)}", {"disabled": True}),
    "delete_key": lambda s, w: ("DELETE", f"/v1/api-keys/{s.new_key(w)}", None),
    "create_service_account": lambda s, w: (
        "POST",
        "/v1/service-accounts",
        {"name": "New", "scopes": ["organization:write"]},
    ),
    "list_service_accounts": lambda s, w: ("GET", "/v1/service-accounts", None),
    "get_service_account": lambda s, w: ("GET", f"/v1/service-accounts/{s.new_service_account()}", None),
    "change_service_account": lambda s, w: (
        "PATCH",
        f"/v1/service-accounts/{s.new_service_account()}",
        {"disabled": True},
    ),
    "rotate_secret": lambda s, w: ("POST", f"/v1/service-accounts/{s.new_service_account()}/secret", None),
    "delete_service_account": lambda s, w: ("DELETE", f"/v1/service-accounts/{s.new_service_account()}", None),
    "list_entitlements": lambda s, w: ("GET", f"{s.at(w)}/entitlements", None),
    "get_entitlement": lambda s, w: ("GET", s.with_entitlement(w), None),
    "put_entitlement": lambda s, w: ("PUT", s.without_entitlement(w), {}),
    "remove_entitlement": lambda s, w: ("DELETE", s.with_entitlement(w), None),
    "jwks": lambda s, w: ("GET", "/.well-known/jwks.json", None),
    "configuration": lambda s, w: ("GET", "/.well-known/openid-configuration", None),
    "token": lambda s, w: ("POST", "/oauth/token", None),
    "metadata": lambda s, w: ("GET", "/.well-known/oauth-authorization-server", None),
    "ask_for_consent": lambda s, w: ("GET", "/oauth/authorize", None),
    "consent": lambda s, w: ("POST", "/oauth/authorize", None),
    "begin_device": lambda s, w: ("POST", "/oauth/device_authorization", None),
    "ask_for_device": lambda s, w: ("GET", "/login/device", None),
    "revoke_token": lambda s, w: ("POST", "/oauth/revoke", None),
}
NO_PROBLEMS = ("delete_me", "token", "ask_for_consent", "consent", "begin_device", "revoke_token")
"""Their errors are plain text, pages, or as RFC 6749 has them."""
SCOPES = {  # of the look-up by provider: the one that might be thought of, and is not needed
    "by_provider": "organization:read",
    "by_unknown_provider": "organization:read",
    "list_organizations": "organization:read",
    "get_organization": "organization:read",
    "list_members": "organization:read",
    "get_member": "organization:read",
    "list_invitations": "organization:read",
    "get_invitation": "organization:read",
    "list_audit_entries": "organization:read",
    "export_audit_entries": "organization:read",
    "create_key": "api-key:write",
    "list_keys": "api-key:write",
    "get_key": "api-key:write",
    "change_key": "api-key:write",
    "delete_key": "api-key:write",
    "list_entitlements": "entitlement:write",
    "get_entitlement": "entitlement:write",
    "put_entitlement": "entitlement:write",
    "remove_entitlement": "entitlement:write",
}
