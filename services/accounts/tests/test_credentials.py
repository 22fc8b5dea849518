"""Broker credentials: what a caller sees, and how the secret comes into the vault and out of it."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts import usecases
from chassis.outbox.relay import Relay
from credential_vault import Destroyed, Secret
from tip_testing.accounts_caller import (
    NEWER,
    SECRET,
    Caller,
    bearer,
    column,
    credential_path,
    drain,
    events,
    opened_secret,
    secret_path,
)
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

FIELDS = {
    "id",
    "account_id",
    "organization_id",
    "broker",
    "label",
    "status",
    "fingerprint",
    "created_at",
    "updated_at",
    "version",
    "test_status",
    "tested_at",
}


def _sealed(deps: usecases.Deps, credential: dict[str, Any]) -> list[int]:
    return column(deps, "SELECT version FROM accounts.sealed_secret WHERE credential_id = :id", id=credential["id"])


def test_a_new_credential_waits_until_its_secret_is_in_the_vault(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    answer = admin.post(f"/v1/accounts/{account_id}/credentials", {"label": "Trading", "secret": SECRET})
    credential = answer.json
    assert (answer.status_code, answer.headers["ETag"], set(credential)) == (201, '"1"', FIELDS)
    assert (credential["status"], credential["broker"], _sealed(deps, credential)) == ("pending", "paper", [1])

    drain(relay)

    assert admin.get(answer.headers["Location"]).json["status"] == "pending", "no broker has accepted it yet"
    assert deps.vault.get(secret_path(credential, 1)).reveal() == SECRET
    assert _sealed(deps, credential) == []


def test_the_event_of_a_credential_carries_ids_and_nothing_else(
    admin: Caller, account_id: str, deps: usecases.Deps
) -> None:
    credential = admin.credential(account_id)

    [_, row] = events(deps, account_id)

    assert row.event_type == "credential.created"
    assert set(row.payload) == {
        "event_id",
        "event_type",
        "occurred_at",
        "organization_id",
        "account_id",
        "credential_id",
        "version",
    }
    assert row.payload["credential_id"] == credential["id"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"label": "x"}, "/secret"),
        ({"label": "x", "secret": "s3cret"}, "/secret"),
        ({"label": "x", "secret": {"key_id": "a"}}, "/secret/secret_key"),
        ({"label": "x", "secret": {**SECRET, "passphrase": "p"}}, "/secret/passphrase"),
        ({"label": "x", "secret": {"key_id": "a", "secret_key": 5}}, "/secret/secret_key"),
        ({"label": "x", "secret": {"key_id": "a", "secret_key": "b c"}}, "/secret/secret_key"),
        ({"label": "x", "secret": {"key_id": "a", "secret_key": "é"}}, "/secret/secret_key"),
        ({"label": "x", "secret": {"key_id": "", "secret_key": "b"}}, "/secret/key_id"),
        ({"label": "", "secret": SECRET}, "/label"),
        ({"label": "x", "secret": SECRET, "status": "active"}, "/status"),
    ],
)
def test_a_secret_of_the_wrong_shape_is_refused_without_being_quoted(
    admin: Caller, account_id: str, deps: usecases.Deps, body: dict[str, Any], pointer: str
) -> None:
    answer = admin.post(f"/v1/accounts/{account_id}/credentials", body)

    assert (answer.status_code, [error["pointer"] for error in answer.json["errors"]]) == (422, [pointer])
    assert "s3cret" not in answer.text and SECRET["secret_key"] not in answer.text
    assert len(events(deps, account_id)) == 1


def test_a_fingerprint_identifies_a_secret_within_one_organization_only(
    admin: Caller, account_id: str, client: FlaskClient, identity: IdentityFixtures
) -> None:
    other = Caller(client, bearer(identity.organization().tokens["admin"]))

    first, again = admin.credential(account_id), admin.credential(account_id)
    changed = admin.credential(account_id, NEWER)
    foreign = other.credential(other.account()["id"])

    assert first["fingerprint"] == again["fingerprint"] != changed["fingerprint"]
    assert foreign["fingerprint"] != first["fingerprint"]
    assert SECRET["key_id"] not in first["fingerprint"]


def test_a_rotation_keeps_the_old_secret_in_use_until_the_new_one_is_in_the_vault(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    credential = admin.credential(account_id)
    drain(relay)

    rotated = admin.call("PUT", f"{credential_path(credential)}/secret", json={"secret": NEWER})
    between = opened_secret(deps, credential["id"])
    drain(relay)

    assert (rotated.status_code, rotated.headers["ETag"], rotated.json["status"]) == (200, '"2"', "pending")
    assert rotated.json["fingerprint"] != credential["fingerprint"]
    assert (between, opened_secret(deps, credential["id"])) == (SECRET, NEWER)
    assert admin.get(credential_path(credential)).json["status"] == "pending", "no broker has accepted it yet"
    with pytest.raises(Destroyed):
        deps.vault.get(secret_path(credential, 1))


def test_rotated_twice_before_the_worker_comes_only_the_last_secret_reaches_the_vault(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    credential = admin.credential(account_id)
    for secret in (SECRET, NEWER):
        admin.call("PUT", f"{credential_path(credential)}/secret", json={"secret": secret})
    assert _sealed(deps, credential) == [3]

    drain(relay)

    assert opened_secret(deps, credential["id"]) == NEWER
    assert [row.status for row in events(deps, account_id)] == ["completed"] * 4
    for version in (1, 2):
        with pytest.raises(Destroyed):
            deps.vault.put(secret_path(credential, version), Secret(SECRET))


def test_a_deleted_credential_is_gone_at_once_and_its_secret_when_the_worker_has_been(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    credential = admin.credential(account_id)
    drain(relay)

    answers = [admin.call("DELETE", credential_path(credential)).status_code for _ in range(2)]
    drain(relay)

    assert (answers, admin.get(credential_path(credential)).status_code) == ([204, 404], 404)
    assert admin.get(f"/v1/accounts/{account_id}/credentials").json == {"data": [], "next_cursor": None}
    with pytest.raises(Destroyed):
        deps.vault.get(secret_path(credential, 1))


def test_a_credential_deleted_before_the_worker_came_never_reaches_the_vault(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    credential = admin.credential(account_id)
    admin.call("DELETE", credential_path(credential))
    assert _sealed(deps, credential) == []

    drain(relay)

    found = column(deps, "SELECT ciphertext FROM accounts.vault_object WHERE credential_id = :id", id=credential["id"])
    assert found == [None]
    assert {row.status for row in events(deps, account_id)} == {"completed"}


def test_deleting_an_account_destroys_the_secrets_of_all_its_credentials(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    credentials = [admin.credential(account_id) for _ in range(2)]
    drain(relay)

    assert admin.call("DELETE", f"/v1/accounts/{account_id}").status_code == 204
    drain(relay)

    assert [row.event_type for row in events(deps, account_id)][-3:] == [*["credential.deleted"] * 2, "account.deleted"]
    for credential in credentials:
        with pytest.raises(Destroyed):
            deps.vault.get(secret_path(credential, 1))


@pytest.mark.parametrize(("method", "end"), [("PUT", "/secret"), ("DELETE", "")])
def test_a_version_that_is_not_the_present_one_changes_nothing(
    admin: Caller, account_id: str, method: str, end: str
) -> None:
    credential = admin.credential(account_id)
    body = {"secret": NEWER} if method == "PUT" else None

    refused = admin.call(method, credential_path(credential) + end, json=body, headers={"If-Match": '"2"'})
    unchanged = admin.get(credential_path(credential)).json
    accepted = admin.call(method, credential_path(credential) + end, json=body, headers={"If-Match": '"1"'})

    assert (refused.status_code, unchanged["version"], accepted.status_code // 100) == (412, 1, 2)


def test_pages_hold_every_credential_once_in_order(admin: Caller, account_id: str) -> None:
    made = [admin.credential(account_id)["id"] for _ in range(5)]

    first = admin.get(f"/v1/accounts/{account_id}/credentials?limit=3").json
    second = admin.get(
        f"/v1/accounts/{account_id}/credentials", query_string={"limit": "3", "next_cursor": first["next_cursor"]}
    ).json

    assert [credential["id"] for credential in first["data"] + second["data"]] == made
    assert second["next_cursor"] is None


def test_an_executor_opens_the_secret_from_the_view_alone(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    credential = admin.credential(account_id)
    drain(relay)

    assert opened_secret(deps, credential["id"]) == SECRET


@pytest.mark.parametrize(("reader", "may"), [("intents", True), ("controls", False), ("stream_gateway", False)])
def test_only_whoever_logs_in_at_brokers_may_read_the_sealed_secrets(
    platform: Platform, reader: str, may: bool
) -> None:
    with platform.admin() as connection:
        found = connection.execute(
            text("SELECT has_table_privilege(:role, 'accounts_api.credential', 'SELECT')"), {"role": f"tip_{reader}"}
        ).scalar_one()

    assert found is may
