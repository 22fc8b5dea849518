"""Every endpoint, by every kind of caller, in its own and in another organization: each cell of the table."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from accounts import model, usecases
from chassis.principals import Kind, Principal
from identity.model import Bounds
from tip_testing.accounts_caller import SECRET, Caller, bearer
from tip_testing.caller_matrix import Row, differences, uncovered
from tip_testing.identity_fixtures import IdentityFixtures, Organization

PERMISSIONS = ("account:read", "account:edit", "credential:read", "credential:edit")
SCOPES = ("account:read", "account:write", "credential:read", "credential:write")


@dataclass(frozen=True)
class Endpoint:
    method: str
    path: str
    permission: str
    scope: str
    success: int
    body: Any = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def at(self, account: str, credential: str) -> str:
        return self.path.format(account_id=account, credential_id=credential)


ACCOUNT, CREDENTIAL = "/v1/accounts/{account_id}", "/v1/accounts/{account_id}/credentials/{credential_id}"
NEW_ACCOUNT = {"name": "x", "broker": "paper", "environment": "paper"}
NEW_CREDENTIAL = {"label": "x", "secret": SECRET}
ENDPOINTS = (
    Endpoint("POST", "/v1/accounts", "account:edit", "account:write", 201, NEW_ACCOUNT),
    Endpoint("GET", "/v1/accounts", "account:read", "account:read", 200),
    Endpoint("GET", "/v1/brokers", "account:read", "account:read", 200),
    Endpoint("GET", ACCOUNT, "account:read", "account:read", 200),
    Endpoint("PATCH", ACCOUNT, "account:edit", "account:write", 200, {"name": "y"}),
    Endpoint("POST", f"{ACCOUNT}/disable", "account:edit", "account:write", 200, {}),
    Endpoint("POST", f"{ACCOUNT}/enable", "account:edit", "account:write", 200, {}),
    Endpoint("DELETE", ACCOUNT, "account:edit", "account:write", 204),
    Endpoint("POST", f"{ACCOUNT}/credentials", "credential:edit", "credential:write", 201, NEW_CREDENTIAL),
    Endpoint("GET", f"{ACCOUNT}/credentials", "credential:read", "credential:read", 200),
    Endpoint("GET", CREDENTIAL, "credential:read", "credential:read", 200),
    Endpoint("PUT", f"{CREDENTIAL}/secret", "credential:edit", "credential:write", 200, {"secret": SECRET}),
    Endpoint("POST", f"{CREDENTIAL}/test", "credential:edit", "credential:write", 202),
    Endpoint("DELETE", CREDENTIAL, "credential:edit", "credential:write", 204),
)


@dataclass(frozen=True)
class People:
    """One organization's callers of every kind, by name."""

    organization: Organization
    headers: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def people(identity: IdentityFixtures) -> People:
    organization = identity.organization()
    headers = {f"user {role}": bearer(organization.tokens[role]) for role in ("admin", "member", "read_only")}
    for permission in PERMISSIONS:
        headers[f"key {permission}"] = {"x-api-key": identity.key(organization.id, "paper", [permission])}
    other_account = Bounds(accounts=(uuid4(),))
    headers["bounded key"] = {"x-api-key": identity.key(organization.id, "paper", PERMISSIONS, other_account)}
    for scope in SCOPES:
        token = identity.service_account([scope]).token
        headers[f"service {scope}"] = bearer(token, organization.id)
        headers[f"service without organization {scope}"] = bearer(token)
    headers["service of an unknown organization"] = bearer(identity.service_account(SCOPES).token, uuid4())
    headers["user without organization"] = bearer(identity.user_without_organization())
    headers["stranger"] = {}
    return People(organization, headers)


CALLERS = (
    *(f"user {role}" for role in ("admin", "member", "read_only")),
    *(f"key {permission}" for permission in PERMISSIONS),
    "bounded key",
    *(f"service {scope}" for scope in SCOPES),
    *(f"service without organization {scope}" for scope in SCOPES),
    "service of an unknown organization",
    "user without organization",
    "stranger",
)


def admitted(endpoint: Endpoint, caller: str) -> int | None:
    """None when the caller may, else the status of the refusal."""
    if caller == "stranger":
        return 401
    if caller == "bounded key":
        return 404 if "{account_id}" in endpoint.path else 403 if endpoint.method == "POST" else None
    reads = endpoint.permission.endswith(":read")
    allowed = {"user admin", f"key {endpoint.permission}", f"service {endpoint.scope}"}
    allowed |= {"user member", "user read_only"} if reads else set()
    return None if caller in allowed else 403


@pytest.fixture(scope="module")
def owner(client: FlaskClient, people: People) -> Caller:
    return Caller(client, people.headers["user admin"])


@pytest.fixture(scope="module")
def foreign(client: FlaskClient, identity: IdentityFixtures) -> Caller:
    return Caller(client, bearer(identity.organization().tokens["admin"]))


def _call(client: FlaskClient, headers: dict[str, str], endpoint: Endpoint, account: str, credential: str) -> Any:
    return Caller(client, headers).call(endpoint.method, endpoint.at(account, credential), json=endpoint.body)


OUTBOX_HEALTH = {
    **{caller: 401 if "key" in caller else 403 for caller in CALLERS},
    "user without organization": 401,
    "service credential:read": 200,
    "service without organization credential:read": 200,
    "service of an unknown organization": 200,
    "stranger": 401,
}


REDRIVE = {
    **dict.fromkeys(CALLERS, 403),
    "service credential:write": 404,
    "service without organization credential:write": 404,
    "service of an unknown organization": 404,
    "stranger": 401,
}
"""Of a row that is not there: who is not refused learns that."""
FAILED_ROWS = {caller: 200 if status == 404 else status for caller, status in REDRIVE.items()}


def row(endpoint: Endpoint, owner: Caller | None = None) -> Row:
    """What each caller gets in the own organization, tried on an account and a credential of the owner's."""

    def request() -> dict[str, Any]:
        assert owner
        account = owner.account()["id"]
        return {"path": endpoint.at(account, owner.credential(account)["id"]), "json": endpoint.body}

    expected = {caller: admitted(endpoint, caller) or endpoint.success for caller in CALLERS}
    return Row(endpoint.method, endpoint.path, expected, request)


HEALTH = Row(
    "GET", "/v1/accounts/outbox/health", OUTBOX_HEALTH, lambda: {"path": "/v1/accounts/outbox/health"}, problems=False
)
OUTBOX_ROWS = (
    Row("GET", "/v1/accounts/outbox/failed", FAILED_ROWS, lambda: {"path": "/v1/accounts/outbox/failed"}),
    Row(
        "POST",
        "/v1/accounts/outbox/failed/{row_id}/redrive",
        REDRIVE,
        lambda: {"path": f"/v1/accounts/outbox/failed/{2**63 - 1}/redrive"},
    ),
)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
def test_in_the_own_organization(client: FlaskClient, people: People, owner: Caller, endpoint: Endpoint) -> None:
    assert differences(client, people.headers.__getitem__, row(endpoint, owner)) == {}


def test_the_outbox_health_is_for_operators_with_the_scope_whatever_organization_they_name(
    client: FlaskClient, people: People
) -> None:
    assert differences(client, people.headers.__getitem__, HEALTH) == {}


@pytest.mark.parametrize("row", OUTBOX_ROWS, ids=str)
def test_failed_outbox_rows_are_for_operators_who_may_write(client: FlaskClient, people: People, row: Row) -> None:
    assert differences(client, people.headers.__getitem__, row) == {}


@pytest.mark.parametrize("endpoint", [row for row in ENDPOINTS if "{" in row.path], ids=str)
def test_in_another_organization_nothing_is_there_and_nothing_is_changed(
    client: FlaskClient, people: People, foreign: Caller, endpoint: Endpoint
) -> None:
    account = foreign.account()
    credential = foreign.credential(account["id"])
    for caller in CALLERS:
        theirs = _call(client, people.headers[caller], endpoint, account["id"], credential["id"])
        nobodys = _call(client, people.headers[caller], endpoint, str(uuid4()), str(uuid4()))

        assert theirs.status_code == nobodys.status_code == (admitted(endpoint, caller) or 404), caller
        assert _without_ids(theirs) == _without_ids(nobodys)

    assert foreign.get(f"/v1/accounts/{account['id']}").json == account
    assert foreign.get(f"/v1/accounts/{account['id']}/credentials").json["data"] == [credential]


def _without_ids(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.json.items() if name not in ("instance", "request_id")}


@pytest.mark.parametrize("endpoint", [row for row in ENDPOINTS if "{credential_id}" in row.path], ids=str)
def test_a_credential_under_another_account_of_the_same_organization_is_not_there(
    client: FlaskClient, people: People, owner: Caller, endpoint: Endpoint
) -> None:
    account, other = owner.account()["id"], owner.account()["id"]
    credential = owner.credential(account)["id"]

    answer = _call(client, people.headers["user admin"], endpoint, other, credential)

    assert answer.status_code == 404
    assert owner.get(f"/v1/accounts/{account}/credentials/{credential}").json["version"] == 1


@pytest.mark.parametrize("caller", ["user admin", "key account:read"])
def test_naming_another_organization_in_a_header_changes_nothing(
    client: FlaskClient, people: People, foreign: Caller, caller: str
) -> None:
    account = foreign.account()
    headers = {**people.headers[caller], "x-organization-id": account["organization_id"]}

    assert client.get(f"/v1/accounts/{account['id']}", headers=headers).status_code == 404


@pytest.mark.parametrize("endpoint", [row for row in ENDPOINTS if "{" in row.path], ids=str)
def test_only_callers_with_access_learn_that_an_id_is_malformed(
    client: FlaskClient, people: People, endpoint: Endpoint
) -> None:
    statuses = [
        _call(client, people.headers[caller], endpoint, "no-id", "no-id").status_code
        for caller in ("stranger", "user without organization", "user admin")
    ]

    assert statuses == [401, 403, 400]


def test_a_bounded_key_lists_and_uses_its_accounts_and_no_others(
    client: FlaskClient, identity: IdentityFixtures, owner: Caller, people: People
) -> None:
    mine, others = [owner.account()["id"] for _ in range(2)], owner.account()["id"]
    bounds = Bounds(accounts=(*map(UUID, mine), uuid4()))
    bounded = Caller(client, {"x-api-key": identity.key(people.organization.id, "paper", bounds=bounds)})

    first = bounded.get("/v1/accounts?limit=1").json
    second = bounded.get(f"/v1/accounts?limit=1&next_cursor={first['next_cursor']}").json

    assert [account["id"] for account in first["data"] + second["data"]] == mine
    assert second["next_cursor"] is None
    assert bounded.get(f"/v1/accounts/{mine[0]}").status_code == 200
    assert bounded.get(f"/v1/accounts/{others}").json["detail"] == "There is nothing here that you may see."


def test_the_table_above_has_every_endpoint(client: FlaskClient) -> None:
    assert uncovered(client.application, [*map(row, ENDPOINTS), HEALTH, *OUTBOX_ROWS]) == set()


def test_a_principal_without_organization_gets_nothing_even_past_the_routes(deps: usecases.Deps) -> None:
    with pytest.raises(model.NotFound):
        usecases.list_accounts(deps, Principal(Kind.USER, "x"), None, 10)
