"""Organizations, their members and their entitlements."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from identity import usecases
from tip_local.identity_seed import ROLES
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]


def test_an_organization_is_created_found_renamed_and_published(
    client: FlaskClient, operator: Headers, events: Any
) -> None:
    external_id = f"Ünïcode & spaces {uuid4().hex}"
    made = client.post("/v1/organizations", json={"external_id": external_id, "name": "Acme"}, headers=operator)
    path = made.headers["Location"]
    client.patch(path, json={"name": "Acme Ltd"}, headers=operator)
    found = client.get(f"/v1/organizations/by-provider/local/{quote(external_id)}", headers=operator)

    assert made.status_code == 201
    assert set(found.json) == {"id", "external_id", "name", "provider", "disabled", "created_at", "totp_required"}
    assert found.json == client.get(path, headers=operator).json == made.json | {"name": "Acme Ltd"}
    published = [kind for kind, payload in events.all() if payload.get("organization_id") == made.json["id"]]
    assert published == ["organization.created", "organization.updated"]


def test_an_external_id_belongs_to_one_organization(
    client: FlaskClient, operator: Headers, organization: Organization
) -> None:
    body = {"external_id": organization.external_id, "name": "Again"}

    answer = client.post("/v1/organizations", json=body, headers=operator)

    assert (answer.status_code, answer.json["code"]) == (409, "organization_exists")


@pytest.mark.parametrize("external_id", ["https://provider.example/organizations/7", "a//b", "trailing/"])
def test_a_providers_id_with_slashes_is_found_written_either_way(
    client: FlaskClient, operator: Headers, external_id: str
) -> None:
    made = client.post("/v1/organizations", json={"external_id": external_id, "name": "Acme"}, headers=operator)
    path = "/v1/organizations/by-provider/local/"

    for written in (external_id, quote(external_id, safe="")):
        assert client.get(path + written, headers=operator).json == made.json


@pytest.mark.parametrize(
    "external_id", ["/7", "un\ufffdknown", "no\u00a0break", "zero\u200bwidth", "line\u2028end", "\x7f", ""]
)
def test_an_organization_that_no_path_and_no_token_could_name_is_not_made(
    client: FlaskClient, operator: Headers, external_id: str
) -> None:
    answer = client.post("/v1/organizations", json={"external_id": external_id, "name": "Acme"}, headers=operator)

    assert (answer.status_code, [error["pointer"] for error in answer.json["errors"]]) == (422, ["/external_id"])


IMPOSSIBLE = ["%00", "a%00b", "%0d%0a", "%ed%a0%80", "%ff", "x" * 300]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_name_in_a_path_that_cannot_be_is_not_found(
    client: FlaskClient, organization: Organization, operator: Headers, admin: Headers, method: str, name: str
) -> None:
    at = f"/v1/organizations/{organization.id}"
    for path, body, headers in (
        (f"{at}/entitlements/{name}", {}, operator),
        (f"{at}/memberships/{name}", {"role": "member"}, admin),
    ):
        assert client.open(path, method=method, json=body, headers=headers).status_code == 404


@pytest.mark.parametrize("provider_id", ["%00", "a%00b", "%0d%0aX-Evil:1", "%ed%a0%80", "x" * 300, "..%2f..", "'--"])
def test_an_impossible_provider_id_names_nothing(client: FlaskClient, operator: Headers, provider_id: str) -> None:
    answer = client.get(f"/v1/organizations/by-provider/local/{provider_id}", headers=operator)

    assert answer.status_code == 404


def test_organizations_are_listed_page_by_page_without_gap_or_repetition(
    client: FlaskClient, identity: IdentityFixtures, operator: Headers
) -> None:
    made = {str(usecases.create_organization(identity.deps, "local", uuid4().hex, "x").id) for _ in range(7)}

    seen: list[str] = []
    cursor = None
    while True:
        query = {"limit": 3} | ({"next_cursor": cursor} if cursor else {})
        page = client.get("/v1/organizations", query_string=query, headers=operator).json
        seen += [listed["id"] for listed in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert made <= set(seen) and len(seen) == len(set(seen))


def test_the_lists_of_an_organization_have_pages_too(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, operator: Headers
) -> None:
    for name in ("trading_live", "controls_premium"):
        usecases.put_entitlement(identity.deps, organization.id, name)
    for path, name, expected in (
        ("memberships", "subject", [identity.subject(organization.external_id, role) for role in ROLES]),
        ("entitlements", "name", ["trading_live", "controls_premium"]),
    ):
        at, seen = f"/v1/organizations/{organization.id}/{path}", []
        page = client.get(f"{at}?limit=1", headers=operator).json
        while page["next_cursor"]:
            seen += [listed[name] for listed in page["data"]]
            page = client.get(f"{at}?limit=1&next_cursor={page['next_cursor']}", headers=operator).json
        assert seen + [listed[name] for listed in page["data"]] == expected
        whole = client.get(at, headers=operator).json
        assert ([listed[name] for listed in whole["data"]], whole["next_cursor"]) == (expected, None)
        assert client.get(f"{at}?limit=0", headers=operator).status_code == 400


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "next_cursor=forged", "other=1", "limit=1&limit=2"]
)
def test_a_bad_page_is_refused(client: FlaskClient, operator: Headers, query: str) -> None:
    for path in ("/v1/organizations", "/v1/service-accounts"):
        assert client.get(f"{path}?{query}", headers=operator).status_code == 400


def test_a_cursor_of_one_organization_means_nothing_in_another(
    client: FlaskClient, identity: IdentityFixtures, admin: Headers, as_bearer: Bearer
) -> None:
    cursor = client.get("/v1/api-keys?limit=1", headers=admin).json["next_cursor"]
    stranger = as_bearer(identity.organization().tokens["admin"])

    assert client.get(f"/v1/api-keys?next_cursor={cursor}", headers=admin).status_code == 200
    assert client.get(f"/v1/api-keys?next_cursor={cursor}", headers=stranger).status_code == 400


@pytest.mark.parametrize("provider", ["auth0|", "https://provider.example/users/"])
def test_an_admin_makes_members_and_changes_and_takes_their_roles(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, as_bearer: Bearer,
    events: Any, provider: str,
) -> None:  # fmt: skip
    path = f"/v1/organizations/{organization.id}/memberships"
    subject = f"{provider}{uuid4().hex[:8]} ü"
    token = as_bearer(identity.user_token(subject, organization.external_id))
    assert client.get("/v1/auth/self", headers=token).status_code == 401

    first = client.put(f"{path}/{quote(subject)}", json={"role": "member"}, headers=admin)
    second = client.put(f"{path}/{quote(subject)}", json={"role": "read_only"}, headers=admin)

    assert [first.status_code, second.status_code] == [201, 200]
    assert (
        client.get(first.headers["Location"], headers=admin).json == second.json == first.json | {"role": "read_only"}
    )
    assert "Location" not in second.headers
    assert client.get("/v1/auth/self", headers=token).json["role"] == "read_only"
    listed = client.get(path, headers=admin).json["data"]
    assert {"subject": subject, "role": "read_only"}.items() <= {member["subject"]: member for member in listed}[
        subject
    ].items()
    assert client.delete(f"{path}/{quote(subject)}", headers=admin).status_code == 204
    assert client.delete(f"{path}/{quote(subject)}", headers=admin).status_code == 404
    assert client.get(first.headers["Location"], headers=admin).status_code == 404
    assert client.get("/v1/auth/self", headers=token).json["organization_id"] is None
    kinds = [kind for kind, payload in events.all() if payload.get("user_id") == first.json["user_id"]]
    assert kinds == ["membership.updated", "membership.updated", "membership.deleted"]


def test_an_organization_keeps_its_last_admin_unless_it_is_taken_away_by_hand(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, operator: Headers
) -> None:
    subject = identity.subject(organization.external_id, "admin")
    path = f"/v1/organizations/{organization.id}/memberships/{subject}"

    demoted = client.put(path, json={"role": "member"}, headers=admin)
    removed = client.delete(path, headers=admin)

    assert [(answer.status_code, answer.json["code"]) for answer in (demoted, removed)] == [(409, "last_admin")] * 2
    usecases.remove_member(identity.deps, None, organization.id, subject)
    assert client.get(path, headers=operator).status_code == 404


def test_an_entitlement_lasts_until_its_date(
    client: FlaskClient,
    identity: IdentityFixtures,
    organization: Organization,
    operator: Headers,
    events: Any,
    platform: Platform,
) -> None:
    path = f"/v1/organizations/{organization.id}/entitlements"
    key = {"x-api-key": organization.api_keys["live"]}
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat().replace("+00:00", "Z")

    def held() -> list[str]:
        return list(client.get("/v1/auth/self", headers=key).json["entitlements"])

    made = client.put(f"{path}/trading_live", json={}, headers=operator)
    again = client.put(f"{path}/trading_live", json={"expires_at": until}, headers=operator)
    assert (made.status_code, made.json["expires_at"]) == (201, None)
    assert (made.headers["Location"], again.headers.get("Location")) == (f"{path}/trading_live", None)
    assert (again.status_code, again.json["expires_at"]) == (200, until)
    assert client.get(f"{path}/trading_live", headers=operator).json == again.json
    assert client.get(path, headers=operator).json["data"] == [again.json]
    assert held() == ["trading_live"]
    with platform.admin() as connection:
        connection.exec_driver_sql(
            "UPDATE identity.entitlement SET expires_at = now() WHERE organization_id = %s", (organization.id,)
        )
    assert held() == []
    assert client.delete(f"{path}/trading_live", headers=operator).status_code == 204
    assert client.delete(f"{path}/trading_live", headers=operator).status_code == 404
    own = {"entitlement": "trading_live", "organization_id": str(organization.id)}.items()
    published = [kind for kind, payload in events.all() if own <= payload.items()]
    assert published == ["entitlement.updated", "entitlement.updated", "entitlement.deleted"]


@pytest.mark.parametrize(
    ("name", "organization_id", "body", "status"),
    [
        ("everything", None, {}, 404),
        ("trading_live", str(UUID(int=1)), {}, 404),
        ("trading_live", "x", {}, 400),
        ("trading_live", None, {"expires_at": "2020-01-01T00:00:00Z"}, 422),
        ("trading_live", None, {"name": "x"}, 422),
    ],
)
def test_an_entitlement_that_cannot_be_is_refused(
    client: FlaskClient, organization: Organization, operator: Headers, name: str, organization_id: str | None,
    body: dict[str, Any], status: int,
) -> None:  # fmt: skip
    path = f"/v1/organizations/{organization_id or organization.id}/entitlements/{name}"

    assert client.put(path, json=body, headers=operator).status_code == status
