"""Organizations, members, keys, service accounts and entitlements: what running the service needs."""

import contextvars
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from chassis.config import BadConfiguration
from chassis.keyuse import KeyUses
from chassis.worker.periodic import run_task
from identity import admin as by_hand
from identity import model, usecases
from identity.app import create_app, dependencies
from identity.config import Config, WorkerConfig
from identity.worker import tasks
from tip_local.identity_seed import ROLES
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]
KEY = {"name": "Desk", "environment": "paper", "permissions": ["intent:read", "intent:edit"]}


def test_an_organization_is_created_found_renamed_and_told_of(
    client: FlaskClient, operator: Headers, events: Any
) -> None:
    external_id = f"Ünïcode & spaces {uuid4().hex}"
    made = client.post("/v1/organizations", json={"external_id": external_id, "name": "Acme"}, headers=operator)
    path = made.headers["Location"]
    client.patch(path, json={"name": "Acme Ltd"}, headers=operator)
    found = client.get(f"/v1/organizations/by-provider/local/{quote(external_id)}", headers=operator)

    assert made.status_code == 201
    assert set(found.json) == {"id", "external_id", "name", "provider", "disabled", "created_at"}
    assert found.json == client.get(path, headers=operator).json == made.json | {"name": "Acme Ltd"}
    told = [kind for kind, payload in events.all() if payload.get("organization_id") == made.json["id"]]
    assert told == ["organization.created", "organization.updated"]


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
        seen += [each["id"] for each in page["data"]]
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
            seen += [each[name] for each in page["data"]]
            page = client.get(f"{at}?limit=1&next_cursor={page['next_cursor']}", headers=operator).json
        assert seen + [each[name] for each in page["data"]] == expected
        whole = client.get(at, headers=operator).json
        assert ([each[name] for each in whole["data"]], whole["next_cursor"]) == (expected, None)
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
    assert {"subject": subject, "role": "read_only"}.items() <= {each["subject"]: each for each in listed}[
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


def test_a_key_is_shown_once_and_never_again(
    client: FlaskClient, admin: Headers, organization: Organization, events: Any
) -> None:
    made = client.post("/v1/api-keys", json=KEY, headers=admin)
    shown = client.get(made.headers["Location"], headers=admin)
    listed = client.get("/v1/api-keys", headers=admin)

    fields = {
        "id",
        "name",
        "environment",
        "permissions",
        "prefix",
        "disabled",
        "expires_at",
        "last_used_at",
        "created_at",
    }
    assert (made.status_code, set(made.json)) == (201, fields | {"key"})
    assert set(shown.json) == fields
    assert made.json["key"].startswith(made.json["prefix"])
    assert made.json["key"] not in shown.get_data(as_text=True) + listed.get_data(as_text=True) + str(events.all())
    self = client.get("/v1/auth/self", headers={"x-api-key": made.json["key"]}).json
    assert (self["id"], self["organization_id"]) == (made.json["id"], str(organization.id))
    assert (self["environment"], self["permissions"]) == ("paper", ["intent:edit", "intent:read"])


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"environment": "demo"}, "/environment"),
        ({"permissions": []}, "/permissions"),
        ({"permissions": ["intent:read", "intent:read"]}, "/permissions"),
        ({"permissions": ["everything"]}, "/permissions/0"),
        ({"permissions": "intent:read"}, "/permissions"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "tomorrow"}, "/expires_at"),
        ({"name": ""}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"organization_id": str(uuid4())}, "/organization_id"),
        ({"key": "mine"}, "/key"),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_a_pointer(
    client: FlaskClient, admin: Headers, change: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/v1/api-keys", json=KEY | change, headers=admin)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]


def test_a_key_is_changed_disabled_and_deleted(client: FlaskClient, admin: Headers, events: Any) -> None:
    made = client.post("/v1/api-keys", json=KEY, headers=admin)
    path, key = made.headers["Location"], {"x-api-key": made.json["key"]}
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat().replace("+00:00", "Z")

    changed = client.patch(
        path, json={"permissions": ["intent:read"], "expires_at": until, "name": "New"}, headers=admin
    )
    assert (changed.status_code, changed.json["permissions"], changed.json["expires_at"]) == (
        200,
        ["intent:read"],
        until,
    )
    assert client.patch(path, json={"expires_at": None}, headers=admin).json["expires_at"] is None
    assert client.patch(path, json={}, headers=admin).status_code == 422
    assert client.patch(path, json={"environment": "live"}, headers=admin).status_code == 422
    assert client.patch(path, json={"disabled": True}, headers=admin).status_code == 200
    assert client.get("/v1/auth/self", headers=key).status_code == 401
    assert client.patch(path, json={"disabled": False}, headers=admin).status_code == 200
    assert client.get("/v1/auth/self", headers=key).status_code == 200
    assert client.delete(path, headers=admin).status_code == 204
    assert client.get("/v1/auth/self", headers=key).status_code == 401
    assert client.get(path, headers=admin).status_code == 404
    told = [kind for kind, payload in events.all() if payload.get("api_key_id") == made.json["id"]]
    assert told == ["api_key.created", *["api_key.updated"] * 4, "api_key.deleted"]


def test_a_service_account_puts_into_a_key_only_what_its_own_scopes_cover(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, as_bearer: Bearer
) -> None:
    narrow = as_bearer(identity.service_account(["api-key:write", "account:read"]).token)
    narrow |= {"x-organization-id": str(organization.id)}

    def ask(*permissions: str) -> tuple[int, str | None]:
        answer = client.post("/v1/api-keys", json=KEY | {"permissions": permissions}, headers=narrow)
        return answer.status_code, answer.json.get("code")

    assert ask("intent:edit", "account:read") == (201, None)
    assert ask("account:edit") == (403, "grant_too_wide")
    assert ask("credential:read", "intent:edit") == (403, "grant_too_wide")
    made = client.post("/v1/api-keys", json=KEY | {"permissions": ["intent:edit"]}, headers=narrow)
    widened = client.patch(made.headers["Location"], json={"permissions": ["control:edit"]}, headers=narrow)
    assert widened.status_code == 403


LATER, SOONER = ((datetime.now(UTC) + timedelta(days=days)).isoformat().replace("+00:00", "Z") for days in (90, 30))


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"disabled": False}, 403),
        ({"expires_at": LATER}, 403),
        ({"expires_at": None}, 403),
        ({"disabled": False, "permissions": ["account:read"]}, 200),
        ({"expires_at": SOONER}, 200),
        ({"disabled": True}, 200),
        ({"name": "Old", "permissions": ["credential:edit"]}, 200),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_a_key_stronger_than_its_scopes_a_service_account_may_weaken_and_not_bring_back(
    client: FlaskClient,
    identity: IdentityFixtures,
    organization: Organization,
    as_bearer: Bearer,
    changes: Any,
    status: int,
) -> None:
    narrow = as_bearer(identity.service_account(["api-key:write", "account:read"]).token)
    in_60_days = datetime.now(UTC) + timedelta(days=60)
    new = model.NewApiKey("Desk", "paper", ("account:read", "credential:edit"), in_60_days)
    key, _ = usecases.create_key(identity.deps, organization.id, new)
    path, headers = f"/v1/api-keys/{key.id}", narrow | {"x-organization-id": str(organization.id)}
    assert client.patch(path, json={"disabled": True}, headers=headers).status_code == 200

    assert client.patch(path, json=changes, headers=headers).status_code == status
    assert client.patch(path, json=changes, headers=as_bearer(organization.tokens["admin"])).status_code == 200


def test_a_service_account_must_name_an_organization_that_is_there(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, operator: Headers
) -> None:
    for value, status in ((None, 403), (str(uuid4()), 403), ("x", 403), (str(organization.id), 200)):
        headers = operator | ({"x-organization-id": value} if value else {})
        assert client.get("/v1/api-keys", headers=headers).status_code == status


def test_a_service_accounts_secret_is_shown_once_and_can_be_replaced(
    client: FlaskClient, operator: Headers, events: Any
) -> None:
    def token(secret: str) -> int:
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        return client.post("/oauth/token", data=form).status_code

    made = client.post("/v1/service-accounts", json={"name": "Bot", "scopes": ["intent:read"]}, headers=operator)
    path, client_id = made.headers["Location"], made.json["client_id"]
    replaced = client.post(f"{path}/secret", headers=operator)

    assert (made.status_code, replaced.status_code) == (201, 200)
    shown = client.get(path, headers=operator)
    assert set(shown.json) == {"client_id", "name", "scopes", "disabled", "created_at"}
    assert client_id in [
        each["client_id"] for each in client.get("/v1/service-accounts?limit=500", headers=operator).json["data"]
    ]
    assert token(made.json["client_secret"]) == 401
    assert token(replaced.json["client_secret"]) == 200
    assert client.delete(path, headers=operator).status_code == 204
    assert token(replaced.json["client_secret"]) == 401
    told = [kind for kind, payload in events.all() if payload.get("client_id") == client_id]
    assert told == ["service_account.created", "service_account.updated", "service_account.deleted"]


def test_nobody_makes_or_takes_over_a_service_account_stronger_than_themselves(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer
) -> None:
    weak = as_bearer(identity.service_account(["organization:write", "intent:read"]).token)
    strong = f"/v1/service-accounts/{identity.service_account().client_id}"
    wide = {"name": "x", "scopes": ["intent:read", "credential:write"]}

    refused = [
        client.post("/v1/service-accounts", json=wide, headers=weak),
        client.post(f"{strong}/secret", headers=weak),
        client.patch(strong, json={"disabled": False}, headers=weak),
        client.patch(strong, json={"scopes": ["entitlement:write"]}, headers=weak),
    ]

    assert [(answer.status_code, answer.json["code"]) for answer in refused] == [(403, "grant_too_wide")] * 4
    assert client.patch(strong, json={"disabled": True}, headers=weak).status_code == 200


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
    told = [kind for kind, payload in events.all() if own <= payload.items()]
    assert told == ["entitlement.updated", "entitlement.updated", "entitlement.deleted"]


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


@pytest.mark.usefixtures("patient_redis")
def test_a_keys_last_use_is_noted_without_a_write_per_request(
    platform: Platform, organization: Organization, admin: Headers
) -> None:
    client = create_app(platform.web_environment("identity")).test_client()
    deps = client.application.extensions["deps"]
    key = {"x-api-key": organization.api_keys["paper"]}
    statements = Statements(deps.engine)

    for _ in range(20):
        assert client.get("/v1/auth/self", headers=key).status_code == 200

    assert [sql for sql in statements.seen if not sql.lstrip().startswith("SELECT")] == []
    key_id = UUID(client.get("/v1/auth/self", headers=key).json["id"])
    assert client.get(f"/v1/api-keys/{key_id}", headers=admin).json["last_used_at"] is None
    scheduler = dependencies(WorkerConfig.from_env(platform.environment("identity")))
    for task in tasks(scheduler, KeyUses(platform.redis_url)):
        run_task("identity-scheduler", task)
    used = datetime.fromisoformat(client.get(f"/v1/api-keys/{key_id}", headers=admin).json["last_used_at"])
    assert timedelta(0) <= datetime.now(UTC) - used < timedelta(seconds=10)


class Statements:
    """The SQL an engine sends from now on."""

    def __init__(self, engine: Any) -> None:
        from sqlalchemy import event

        self.seen: list[str] = []
        event.listen(engine, "before_cursor_execute", self._note)

    def _note(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.seen.append(statement)


def test_an_organization_without_redis_still_knows_its_keys(platform: Platform, identity: IdentityFixtures) -> None:
    organization = identity.organization()
    client = create_app(platform.web_environment("identity", REDIS_URL="redis://127.0.0.1:9/0")).test_client()

    assert client.get("/v1/auth/self", headers={"x-api-key": organization.api_keys["live"]}).status_code == 200


@pytest.mark.parametrize("variable", ["SIGNING_KEY_ENCRYPTION_KEY", "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS"])
def test_a_key_that_is_no_key_is_named_and_not_quoted(
    platform: Platform, variable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        create_app(platform.web_environment("identity", **{variable: "c2hvcnQ="}))

    said = capsys.readouterr().err
    assert said.startswith(f"identity: configuration: {variable}: ") and "c2hvcnQ" not in said


@pytest.mark.parametrize(
    "variable", ["VALIDATE_RATE_LIMIT_PER_MINUTE", "TOKEN_RATE_LIMIT_PER_MINUTE", "TOKEN_LIFETIME_SECONDS"]
)
@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_limit_that_would_let_nobody_in_does_not_start(platform: Platform, variable: str, value: str) -> None:
    with pytest.raises(BadConfiguration, match=f"^{variable}: must be at least 1$"):
        Config.from_env(platform.environment("identity", **{variable: value}))


def test_what_every_service_checks_of_its_configuration_identity_checks_too(platform: Platform) -> None:
    with pytest.raises(BadConfiguration, match=r"^RATE_LIMIT_PER_MINUTE: "):
        Config.from_env(platform.environment("identity", RATE_LIMIT_PER_MINUTE="0"))


def test_the_document_describes_every_endpoint(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    described = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}

    assert ("DELETE", "/v1/users/me") in described and ("POST", "/oauth/token") in described
    assert len(described) == 31
    assert client.get("/docs").status_code == 200


def do_by_hand(*arguments: str) -> None:
    """As a process of its own would, which serves nobody when it begins; requests of this thread have left somebody."""
    contextvars.Context().run(by_hand.main, arguments)


def test_the_first_operator_is_made_by_hand(
    client: FlaskClient, platform: Platform, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in platform.web_environment("identity").items():
        monkeypatch.setenv(name, value)

    do_by_hand("create-service-account", "--name", "operator", "--scope", "organization:write")

    form = {"grant_type": "client_credentials", **json.loads(capsys.readouterr().out)}
    assert client.post("/oauth/token", data=form).json["scope"] == "organization:write"


def test_the_first_admin_of_an_organization_is_made_by_hand(
    client: FlaskClient, platform: Platform, identity: IdentityFixtures, operator: Headers, as_bearer: Bearer,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name, value in platform.web_environment("identity").items():
        monkeypatch.setenv(name, value)
    external_id, subject = uuid4().hex, f"founder-{uuid4().hex[:8]}"
    made = client.post("/v1/organizations", json={"external_id": external_id, "name": "New"}, headers=operator).json
    member = ["--organization", made["id"], "--subject", subject]
    founder = as_bearer(identity.user_token(subject, external_id))

    do_by_hand("put-member", *member, "--role", "admin")
    assert json.loads(capsys.readouterr().out)["role"] == "admin"
    path = f"/v1/organizations/{made['id']}/memberships/{uuid4().hex}"
    assert client.put(path, json={"role": "member"}, headers=founder).status_code == 201
    do_by_hand("remove-member", *member)
    assert client.put(path, json={"role": "admin"}, headers=founder).status_code == 403
    with pytest.raises(SystemExit, match="nothing here"):
        do_by_hand("put-member", "--organization", str(uuid4()), "--subject", subject, "--role", "admin")


def test_the_readme_names_every_variable_every_endpoint_and_no_other(client: FlaskClient) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    environment = readme.split("## Environment")[1].split("## Messages")[0]

    assert set(re.findall(r"`([A-Z_]{4,})`", environment)) == {row[0] for row in Config.documentation()}
    for path in client.get("/openapi.json").json["paths"]:
        last = path.rpartition("/")[2]
        assert last.startswith("{") or f"/{last}" in readme, path
