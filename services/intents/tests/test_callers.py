"""Who may call: the specification's table, every cell."""

from collections.abc import Callable
from dataclasses import replace as replace_fields
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Connection, text

from chassis import keys
from identity.model import Bounds
from tip_local.identity_seed import add_account
from tip_testing.caller_matrix import Row, differences, uncovered
from tip_testing.commands import create, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures, Organization

from .conftest import Desk

READS = ["", "/stats", "/verify", "/{intent_id}", "/{intent_id}/actions", "/{intent_id}/timeline"]
INTENTS = "/v1/accounts/{account_id}/intents"
HOLDINGS = [f"/v1/accounts/{{account_id}}/{name}" for name in ("positions", "balances", "orders", "refusals")]
QUOTE = "/v1/accounts/{account_id}/quotes/{symbol}"
REFRESH = "/v1/accounts/{account_id}/refresh"
STATEMENT = "/v1/accounts/{account_id}/statement"
OPERATION = "/v1/accounts/{account_id}/bulk-operations/{bulk_operation_id}"
BATCH = {"commands": [create()["command"]]}


@pytest.fixture(scope="module")
def credentials(identity: IdentityFixtures, organization: Organization) -> dict[str, dict[str, str]]:
    """Every kind of caller, by name."""
    other = identity.organization()
    bearer = {role: {"Authorization": f"Bearer {token}"} for role, token in organization.tokens.items()}
    service = {"Authorization": f"Bearer {identity.service_account(['intent:read']).token}"}
    wrong_scope = {"Authorization": f"Bearer {identity.service_account(['account:read']).token}"}
    mine, theirs = {"x-organization-id": str(organization.id)}, {"x-organization-id": str(other.id)}
    edit_only = identity.key(organization.id, "paper", ["intent:edit"])
    bounded = identity.key(organization.id, "paper", bounds=Bounds(accounts=(uuid4(),)))
    return {
        "nobody": {},
        "forged key": {"x-api-key": "tip_paper_" + "A" * 36},
        "unknown key": {"x-api-key": keys.generate("paper")},
        "forged token": {"Authorization": "Bearer x.y.z"},
        "paper key": {"x-api-key": organization.api_keys["paper"]},
        "live key": {"x-api-key": organization.api_keys["live"]},
        "read-only key": {"x-api-key": organization.api_keys["paper_read_only"]},
        "edit-only key": {"x-api-key": edit_only},
        "key bounded to another account": {"x-api-key": bounded},
        "foreign key": {"x-api-key": other.api_keys["paper"]},
        "foreign key naming us": {"x-api-key": other.api_keys["paper"], **mine},
        "admin": bearer["admin"],
        "member": bearer["member"],
        "read-only user": bearer["read_only"],
        "foreign admin": {"Authorization": f"Bearer {other.tokens['admin']}"},
        "foreign admin naming us": {"Authorization": f"Bearer {other.tokens['admin']}", **mine},
        "user without organization": {"Authorization": f"Bearer {identity.user_without_organization()}"},
        "service account": {**service, **mine},
        "service account of another": {**service, **theirs},
        "service account naming none": service,
        "service account without scope": {**wrong_scope, **mine},
        "two credentials": {"x-api-key": organization.api_keys["paper"], **bearer["admin"]},
    }


MAY = {
    # caller: (submit, read) on a paper account of `organization`
    "nobody": (401, 401),
    "forged key": (401, 401),
    "unknown key": (401, 401),
    "forged token": (401, 401),
    "paper key": (201, 200),
    "live key": (403, 200),
    "read-only key": (403, 200),
    "edit-only key": (201, 403),
    "key bounded to another account": (404, 404),
    "foreign key": (404, 404),
    "foreign key naming us": (404, 404),
    "admin": (403, 200),
    "member": (403, 200),
    "read-only user": (403, 200),
    "foreign admin": (403, 404),
    "foreign admin naming us": (403, 404),
    "user without organization": (403, 403),
    "service account": (403, 200),
    "service account of another": (403, 404),
    "service account naming none": (403, 403),
    "service account without scope": (403, 403),
    "two credentials": (400, 400),
}


def rows(desk: Desk | None = None, intent_id: str = "", operation_id: str = "") -> list[Row]:
    """A row per endpoint, tried on the desk's account, on an intent and on a bulk operation of it."""

    def row(method: str, path: str, place: int, success: int, body: Any = None) -> Row:
        def request() -> dict[str, Any]:
            assert desk
            ids = {"account_id": desk.account_id, "intent_id": intent_id, "bulk_operation_id": operation_id}
            return {"path": path.format(**ids, symbol="ABC"), "json": body}

        expected = {caller: success if may[place] < 300 else may[place] for caller, may in MAY.items()}
        return Row(method, path, expected, request)

    submits = [row("POST", INTENTS, 0, 201, create()), row("POST", f"{INTENTS}/batch", 0, 200, BATCH)]
    submits.append(row("POST", f"{INTENTS}/cancel", 0, 202, {}))
    submits.append(row("POST", "/v1/accounts/{account_id}/positions/close", 0, 202, {}))
    reads = [row("GET", path, 1, 200) for path in (*(INTENTS + read for read in READS), *HOLDINGS, OPERATION)]
    for read in (row("GET", QUOTE, 1, 200), row("POST", REFRESH, 1, 202)):  # at the broker, under the credential
        reads.append(replace_fields(read, expected={**read.expected, "live key": 403}))
    published = Row("GET", "/.well-known/log-jwks.json", dict.fromkeys(MAY, 200), lambda: {"path": published.path})
    return [*submits, *reads, row("GET", STATEMENT, 1, 409), published]  # 409: nothing of the account is signed


def test_submitting_is_for_keys_with_intent_edit_of_the_accounts_organization(
    desk: Desk, credentials: dict[str, dict[str, str]]
) -> None:
    for row in rows(desk)[:2]:
        before, allowed = len(desk.rows("action")), sum(status < 300 for status in row.expected.values())

        assert differences(desk.client, credentials.__getitem__, row) == {}, row
        assert len(desk.rows("action")) == len(desk.outbox()) == before + allowed


def test_reading_is_for_the_accounts_organization_and_its_service_accounts(
    desk: Desk, credentials: dict[str, dict[str, str]]
) -> None:
    intent_id = desk.created(create())["intent_id"]
    operation_id = desk.client.post(f"{desk.path}/cancel", json={}, headers=desk.headers).json["id"]

    for row in rows(desk, intent_id, operation_id)[2:]:
        assert differences(desk.client, credentials.__getitem__, row) == {}, row


def test_the_table_above_has_every_endpoint(desk: Desk) -> None:
    assert uncovered(desk.app, rows()) == set()


@pytest.mark.parametrize("caller", ["read-only key", "admin"])
def test_a_refusal_says_who_may(desk: Desk, credentials: dict[str, dict[str, str]], caller: str) -> None:
    refused = desk.client.post(desk.path, json=create(), headers=credentials[caller])

    assert "API key with `intent:edit`" in refused.json["detail"]


def test_foreign_and_unknown_accounts_and_intents_look_alike(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    foreign = new_desk()
    theirs = foreign.created(create())["intent_id"]
    unknown = "8f6a4a3e-0000-4000-8000-000000000000"
    paths = [
        *(f"/v1/accounts/{account}/intents{read}" for account in (foreign.account_id, unknown) for read in READS),
        *(
            f"{desk.path}/{intent_id}{more}"
            for intent_id in (theirs, unknown)
            for more in ("", "/actions", "/timeline")
        ),
    ]

    bodies = [desk.client.get(path.format(intent_id=theirs), headers=desk.headers).json for path in paths]

    assert {(body["status"], body["code"], body["detail"]) for body in bodies} == {
        (404, "not_found", "There is nothing here that you may see.")
    }


def live(admin: Connection, organization: Organization) -> str:
    return f"/v1/accounts/{add_account(admin, organization.id, 'live')}/intents"


def test_a_live_account_needs_the_trading_live_entitlement_before_anything_in_the_body_matters(
    identity: IdentityFixtures, admin: Connection, client: FlaskClient
) -> None:
    organization = identity.organization()
    path, headers = live(admin, organization), {"x-api-key": organization.api_keys["live"]}

    for body in (create(), {"nonsense": True}, limit(), replace("8f6a4a3e-0000-4000-8000-000000000000")):
        for to, sent in ((path, body), (f"{path}/batch", {"commands": [body]}), (f"{path}/batch", BATCH)):
            answer = client.post(to, json=sent, headers=headers)
            assert (answer.status_code, answer.json["code"]) == (403, "entitlement_required")
            assert answer.json["entitlement"] == "trading_live"
    assert client.get(path, headers=headers).status_code == 200


@pytest.mark.parametrize(("ends", "status"), [("1 hour", 201), ("-1 second", 403)])
def test_an_entitlement_counts_until_its_end(
    identity: IdentityFixtures, admin: Connection, client: FlaskClient, ends: str, status: int
) -> None:
    organization = identity.organization(entitlements=("trading_live",))
    admin.execute(
        text(
            "UPDATE identity.entitlement SET expires_at = now() + CAST(:ends AS interval) WHERE organization_id = :id"
        ),
        {"id": organization.id, "ends": ends},
    )

    answer = client.post(live(admin, organization), json=create(), headers={"x-api-key": organization.api_keys["live"]})

    assert answer.status_code == status


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE identity.api_key SET disabled = true WHERE organization_id = :id",
        "UPDATE identity.api_key SET expires_at = now() WHERE organization_id = :id",
        "UPDATE identity.organization SET disabled = true WHERE id = :id",
    ],
)
def test_a_key_that_is_taken_away_is_refused_from_the_next_request_on(
    new_desk: Callable[..., Desk], change: str
) -> None:
    desk = new_desk()
    desk.created(create())

    desk.execute(change, id=desk.organization.id)

    assert desk.submit(create()).status_code == 401
    assert desk.get().status_code == 401
    assert len(desk.rows("action")) == 1


def test_the_checks_come_in_order(desk: Desk, credentials: dict[str, dict[str, str]]) -> None:
    """Credential, kind and permission, account, entitlement, body, controls: each is reported after those before."""
    nonsense: Any = {"nonsense": True}

    def status(caller: str, path: str = desk.path) -> int:
        return desk.client.post(path, json=nonsense, headers=credentials[caller]).status_code

    assert status("nobody") == 401
    assert status("admin") == 403
    assert status("read-only key") == 403
    assert status("foreign key") == 404
    assert status("live key") == 403
    assert status("paper key") == 422


def test_the_app_checks_the_size_of_a_body_after_the_credential(desk: Desk) -> None:
    """Where no connection of ours stands before it, which refuses such a body from anybody."""
    body = b"[" * 100_000
    send = {"data": body, "content_type": "application/json"}

    assert desk.client.post(desk.path, **send).status_code == 401
    assert desk.client.post(desk.path, **send, headers={"x-api-key": keys.generate("paper")}).status_code == 401
    assert desk.client.post(desk.path, **send, headers=desk.headers).status_code == 413


@pytest.mark.parametrize(
    "question",
    [
        "?limit=0",
        "?next_cursor=x",
        "/stats?time_window=x",
        "/verify?next_cursor=x",
        "/{id}/actions?limit=0",
        "/{id}/timeline?limit=0",
    ],
)
def test_a_foreign_account_is_not_found_whatever_is_requested_of_it(
    desk: Desk, new_desk: Callable[..., Desk], question: str
) -> None:
    path = question.format(id="8f6a4a3e-0000-4000-8000-000000000000")
    foreign = new_desk()

    assert desk.client.get(foreign.path + path, headers=desk.headers).status_code == 404
    assert desk.get(path).status_code == 400


@pytest.mark.parametrize("path", ["intents", "intents/8f6a4a3e-0000-4000-8000-000000000000", "positions", "balances"])
def test_a_parameter_that_does_not_exist_reveals_nothing_about_whose_account_it_is(
    desk: Desk, new_desk: Callable[..., Desk], path: str
) -> None:
    accounts = [owner.account_id for owner in (new_desk(), desk)] + ["8f6a4a3e-0000-4000-8000-000000000000"]
    answers = [
        desk.client.get(f"/v1/accounts/{account_id}/{path}?x=1", headers=desk.headers) for account_id in accounts
    ]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(400, "unknown_query")] * 3
    assert len({answer.json["detail"] for answer in answers}) == 1
