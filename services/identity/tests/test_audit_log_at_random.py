"""Whatever is changed in whatever order, the audit log says exactly that: compared with a plain account of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tip_local.identity_seed import ROLES
from tip_testing.identity_fixtures import IdentityFixtures, Organization

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]
Line = tuple[str, str, Any, Any, str]
"""Type, target, from, to, and who."""

PEOPLE = ("ann", "bob")
UNTIL = (None, "2099-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z")
STEPS = st.one_of(
    st.tuples(st.just("put_member"), st.sampled_from(PEOPLE), st.sampled_from(ROLES)),
    st.tuples(st.just("remove_member"), st.sampled_from((*PEOPLE, "admin"))),
    st.tuples(st.just("put_entitlement"), st.just("trading_live"), st.sampled_from(UNTIL)),
    st.tuples(st.just("remove_entitlement"), st.just("trading_live")),
    st.tuples(st.just("create_key"), st.sampled_from(("Desk", "Bot"))),
    st.tuples(
        st.just("change_key"),
        st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(("Desk", "Bot")),
                "disabled": st.booleans(),
                "permissions": st.sampled_from((["intent:read"], ["intent:read", "intent:edit"])),
                "expires_at": st.sampled_from(UNTIL),
            },
        ).filter(bool),
    ),
    st.tuples(st.just("delete_key")),
    st.tuples(st.just("rename"), st.sampled_from(("Acme", "Umbrella"))),
)


@dataclass
class Desk:
    """An organization, everything that is known of it, and what its log must say."""

    client: FlaskClient
    organization: Organization
    admin: Headers
    operator: Headers
    who: dict[str, str]
    """The ids of the admin and the operator, as the log names them."""
    name: str
    known: dict[str, Any] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=lambda: {name: f"{name}-{uuid4().hex[:8]}" for name in PEOPLE})
    keys: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/v1/organizations/{self.organization.id}"

    def call(self, method: str, path: str, headers: Headers, body: Any = None) -> Any:
        return self.client.open(path, method=method, json=body, headers=headers)

    def note(self, kind: str, target: str, after: Any, who: str) -> None:
        """What was put or taken away; nothing if it was so before."""
        before = self.known.get(target)
        if before == after:
            return
        self.known[target] = after
        if before is not None and after is not None:
            names = [name for name in before if before[name] != after[name]]
            before, after = ({name: value[name] for name in names} for value in (before, after))
        self.lines.append((kind, target, before, after, self.who[who]))

    def put_member(self, name: str, role: str) -> None:
        subject = self.subjects[name]
        assert self.call("PUT", f"{self.path}/memberships/{subject}", self.admin, {"role": role}).status_code < 300
        self.note("membership.updated", subject, {"role": role}, "admin")

    def remove_member(self, name: str) -> None:
        subject = self.subjects.get(name, self.who["admin"])
        status = self.call("DELETE", f"{self.path}/memberships/{subject}", self.admin).status_code
        if name == "admin":
            others = [self.known.get(found) for found in self.subjects.values()]
            assert status == (204 if {"role": "admin"} in others else 409)
        if status == 204:
            self.note("membership.deleted", subject, None, "admin")

    def put_entitlement(self, name: str, until: str | None) -> None:
        self.call("PUT", f"{self.path}/entitlements/{name}", self.operator, {"expires_at": until})
        self.note("entitlement.updated", name, {"expires_at": until}, "operator")

    def remove_entitlement(self, name: str) -> None:
        status = self.call("DELETE", f"{self.path}/entitlements/{name}", self.operator).status_code
        assert status == (204 if self.known.get(name) else 404)
        self.note("entitlement.deleted", name, None, "operator")

    def create_key(self, name: str) -> None:
        body = {"name": name, "environment": "paper", "permissions": ["intent:read"]}
        made = self.call("POST", "/v1/api-keys", self.operator, body).json
        self.keys.append(made["id"])
        shown = body | {"prefix": made["prefix"], "disabled": False, "expires_at": None, "bounds": None}
        self.note("api_key.created", made["id"], shown, "operator")

    def change_key(self, changes: dict[str, Any]) -> None:
        if self.keys:
            key_id = self.keys[-1]
            assert self.call("PATCH", f"/v1/api-keys/{key_id}", self.operator, changes).status_code == 200
            self.note("api_key.updated", key_id, self.known[key_id] | changes, "operator")

    def delete_key(self) -> None:
        if self.keys:
            key_id = self.keys.pop()
            self.call("DELETE", f"/v1/api-keys/{key_id}", self.operator)
            self.note("api_key.deleted", key_id, None, "operator")

    def rename(self, name: str) -> None:
        self.call("PATCH", self.path, self.operator, {"name": name})
        self.note("organization.updated", str(self.organization.id), {"name": name}, "operator")

    def recorded(self) -> list[Line]:
        answer = self.call("GET", f"{self.path}/audit-entries?limit=500", self.operator).json
        return [
            (entry["type"], entry["target"], entry["from"], entry["to"], entry["actor"]["id"])
            for entry in reversed(answer["data"])
        ]


def desk(client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer) -> Desk:
    organization, service = identity.organization(), identity.service_account()
    operator = as_bearer(service.token) | {"x-organization-id": str(organization.id)}
    who = {"admin": identity.subject(organization.external_id, "admin"), "operator": service.client_id}
    made = Desk(client, organization, as_bearer(organization.tokens["admin"]), operator, who, "")
    made.known = {
        who["admin"]: {"role": "admin"},
        str(organization.id): {"name": organization.external_id.capitalize()},
    }
    return made


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=1, max_size=12))
def test_the_log_says_what_was_changed_and_nothing_else(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer, steps: Sequence[Any]
) -> None:
    made = desk(client, identity, as_bearer)
    founding = made.recorded()

    for step, *arguments in steps:
        getattr(made, step)(*arguments)
        if made.known.get(made.who["admin"]) is None:
            break  # nobody is left to act for

    assert made.recorded() == founding + made.lines
