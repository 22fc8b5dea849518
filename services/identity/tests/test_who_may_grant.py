"""Who makes whom a member: whatever anybody tries, roles come from admins of that very organization and nobody else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity import model, usecases
from tip_local.identity_seed import OPERATOR, ROLES
from tip_testing.identity_fixtures import IdentityFixtures

Headers = dict[str, str]
Bearer = Callable[[str], Headers]

ORGANIZATIONS, PEOPLE = ("x", "y"), ("ann", "bob", "cid")
CALLERS = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(PEOPLE), st.sampled_from(ORGANIZATIONS)),
    st.tuples(st.just("service account"), st.sets(st.sampled_from(model.SCOPES)), st.sampled_from(ORGANIZATIONS)),
    st.tuples(st.just("service account"), st.just(frozenset(model.SCOPES)), st.sampled_from(ORGANIZATIONS)),
    st.tuples(st.just("key"), st.just(""), st.sampled_from(ORGANIZATIONS)),
)
# A role to give, or None to take the membership away.
STEPS = st.tuples(
    CALLERS,
    st.sampled_from(ORGANIZATIONS),
    st.sampled_from(PEOPLE),
    st.sampled_from([*ROLES, None]),
)


@dataclass
class Stage:
    """Two new organizations, each founded by one admin, and what the rules say of their members so far."""

    identity: IdentityFixtures
    as_bearer: Bearer
    ids: dict[str, UUID] = field(default_factory=dict)
    external_ids: dict[str, str] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=lambda: {name: f"{name}-{uuid4().hex[:12]}" for name in PEOPLE})
    members: dict[tuple[str, str], str] = field(default_factory=dict)

    def found(self, organization: str, founder: str) -> None:
        external_id = self.external_ids[organization] = uuid4().hex
        made = usecases.create_organization(self.identity.deps, self.identity.provider, external_id, organization)
        self.ids[organization] = made.id
        usecases.put_member(self.identity.deps, made, self.subjects[founder], "admin")
        self.members[organization, founder] = "admin"

    def headers(self, caller: tuple[str, Any, str]) -> Headers:
        kind, who, organization = caller
        if kind == "key":
            return {"x-api-key": self.identity.key(self.ids[organization], "paper")}
        if kind == "service account":
            token = self.identity.service_account(sorted(who)).token
            return self.as_bearer(token) | {"x-organization-id": str(self.ids[organization])}
        # The token claims the strongest role; what is recorded has to decide.
        return self.as_bearer(self.identity.user_token(self.subjects[who], self.external_ids[organization], "admin"))

    def path(self, organization: str, who: str) -> str:
        return f"/v1/organizations/{self.ids[organization]}/memberships/{self.subjects[who]}"

    def expected(self, caller: tuple[str, Any, str], organization: str, who: str, role: str | None) -> int:
        kind, name, own = caller
        if kind != "user" or self.members.get((own, name)) != "admin":
            return 403
        if own != organization:
            return 404
        before = self.members.get((organization, who))
        if role is None and before is None:
            return 404
        if before == "admin" != role and self.admins(organization) == [who]:
            return 409
        return 204 if role is None else 200 if before else 201

    def admins(self, organization: str) -> list[str]:
        return [who for (where, who), role in self.members.items() if where == organization and role == "admin"]

    def recorded(self) -> Mapping[tuple[str, str], str]:
        names = {subject: name for name, subject in self.subjects.items()}
        return {
            (organization, names[member.subject]): member.role
            for organization, organization_id in self.ids.items()
            for member in usecases.list_members(self.identity.deps, OPERATOR, organization_id, None, 100)
        }


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=1, max_size=8))
def test_a_role_is_given_and_taken_by_an_admin_of_that_organization_and_by_nobody_else(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer, steps: Sequence[Any]
) -> None:
    stage = Stage(identity, as_bearer)
    stage.found("x", "ann")
    stage.found("y", "bob")
    # Everybody is known, also who belongs nowhere yet: else a token of theirs is nobody's.
    usecases.put_user(identity.deps, identity.provider, stage.subjects["cid"])

    for caller, organization, who, role in steps:
        expected = stage.expected(caller, organization, who, role)
        method, body = ("PUT", {"role": role}) if role else ("DELETE", None)
        answer = client.open(stage.path(organization, who), method=method, json=body, headers=stage.headers(caller))

        assert answer.status_code == expected, answer.get_data(as_text=True)
        if expected in (200, 201):
            stage.members[organization, who] = role
        elif expected == 204:
            del stage.members[organization, who]
        assert stage.recorded() == stage.members


@pytest.mark.parametrize("role", ROLES)
def test_no_scope_is_worth_a_role(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer, role: str
) -> None:
    organization, subject = identity.organization(), f"mallory-{uuid4().hex[:12]}"
    everything = as_bearer(identity.service_account().token) | {"x-organization-id": str(organization.id)}
    path = f"/v1/organizations/{organization.id}/memberships/{subject}"

    assert client.put(path, json={"role": role}, headers=everything).status_code == 403
    mallory = as_bearer(identity.user_token(subject, organization.external_id, role))
    assert client.get("/v1/auth/self", headers=mallory).status_code == 401
