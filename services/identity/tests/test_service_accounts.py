"""Service accounts, and what an operator makes by hand before there is one."""

import contextvars
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from identity import admin as by_hand
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]


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
        listed["client_id"] for listed in client.get("/v1/service-accounts?limit=500", headers=operator).json["data"]
    ]
    assert token(made.json["client_secret"]) == 401
    assert token(replaced.json["client_secret"]) == 200
    assert client.delete(path, headers=operator).status_code == 204
    assert token(replaced.json["client_secret"]) == 401
    published = [kind for kind, payload in events.all() if payload.get("client_id") == client_id]
    assert published == ["service_account.created", "service_account.updated", "service_account.deleted"]


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
        client.patch(strong, json={"scopes": ["intent:read"]}, headers=weak),
        client.patch(strong, json={"scopes": ["intent:read"], "disabled": True}, headers=weak),
        client.patch(strong, json={"name": "mine"}, headers=weak),
    ]

    assert [(answer.status_code, answer.json["code"]) for answer in refused] == [(403, "grant_too_wide")] * 7
    assert client.patch(strong, json={"disabled": True}, headers=weak).status_code == 200


def test_a_token_with_fewer_scopes_than_its_account_gives_only_those(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer
) -> None:
    account = identity.service_account()
    narrow = as_bearer(identity.service_token(account.client_id, ["organization:write"]))
    own = f"/v1/service-accounts/{account.client_id}"

    assert client.post(f"{own}/secret", headers=narrow).status_code == 403
    wide = {"name": "x", "scopes": ["organization:write", "api-key:write"]}
    assert client.post("/v1/service-accounts", json=wide, headers=narrow).status_code == 403
    assert (
        client.post("/v1/service-accounts", json=wide | {"scopes": ["organization:write"]}, headers=narrow).status_code
        == 201
    )


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
