"""API keys: shown once, changed, disabled, and no stronger than whoever makes them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from chassis.keyuse import KeyUses
from chassis.worker.periodic import run_task
from identity import model, usecases
from identity.app import create_app, dependencies
from identity.config import WorkerConfig
from identity.worker import tasks
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]
KEY = {"name": "Desk", "environment": "paper", "permissions": ["intent:read", "intent:edit"]}


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
        "bounds",
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
    published = [kind for kind, payload in events.all() if payload.get("api_key_id") == made.json["id"]]
    assert published == ["api_key.created", *["api_key.updated"] * 4, "api_key.deleted"]


def test_a_service_account_puts_into_a_key_only_what_its_own_scopes_cover(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, as_bearer: Bearer
) -> None:
    narrow = as_bearer(identity.service_account(["api-key:write", "account:read"]).token)
    narrow |= {"x-organization-id": str(organization.id)}

    def create(*permissions: str) -> tuple[int, str | None]:
        answer = client.post("/v1/api-keys", json=KEY | {"permissions": permissions}, headers=narrow)
        return answer.status_code, answer.json.get("code")

    assert create("intent:edit", "account:read") == (201, None)
    assert create("account:edit") == (403, "grant_too_wide")
    assert create("credential:read", "intent:edit") == (403, "grant_too_wide")
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


def test_a_refusal_is_hardly_longer_than_its_request(client: FlaskClient, admin: dict[str, str]) -> None:
    body = json.dumps({"permissions": [""] * 20})
    answer = client.post("/v1/api-keys", data=body, content_type="application/json", headers=admin)

    assert answer.status_code == 422
    assert len(answer.data) < len(body) + 1280, "a request has a head, too"
