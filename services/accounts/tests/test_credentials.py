"""Broker credentials: what a caller sees, and how the secret comes into the vault and out of it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts import usecases, worker
from chassis import db, queues
from chassis.config import ServiceConfig
from chassis.feed import Feed
from chassis.outbox import Event, Outbox
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from credential_vault import Destroyed, Local, Refused, Secret, SecretPath, Unavailable
from intents import worker as intents_worker
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
from tip_testing.outbox import age_claims, consuming
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

    assert admin.get(answer.headers["Location"]).json["status"] == "active"
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


def test_a_fingerprint_tells_the_same_secret_within_an_organization_only(
    admin: Caller, account_id: str, client: FlaskClient, identity: IdentityFixtures
) -> None:
    other = Caller(client, bearer(identity.organization().tokens["admin"]))

    first, again = admin.credential(account_id), admin.credential(account_id)
    changed = admin.credential(account_id, NEWER)
    elsewhere = other.credential(other.account()["id"])

    assert first["fingerprint"] == again["fingerprint"] != changed["fingerprint"]
    assert elsewhere["fingerprint"] != first["fingerprint"]
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
    assert admin.get(credential_path(credential)).json["status"] == "active"
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

    assert [each["id"] for each in first["data"] + second["data"]] == made
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


def test_objects_swapped_or_rolled_back_in_the_table_are_refused(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, platform: Platform
) -> None:
    first, second = admin.credential(account_id), admin.credential(account_id, NEWER)
    drain(relay)
    copy = (
        "UPDATE accounts.vault_object t SET wrapped_key = f.wrapped_key, ciphertext = f.ciphertext, key_id = f.key_id"
    )
    with platform.admin() as connection:
        connection.execute(text("CREATE TABLE public.stolen AS SELECT * FROM accounts.vault_object"))
        connection.execute(
            text(f"{copy} FROM accounts.vault_object f WHERE t.credential_id = :to AND f.credential_id = :from"),
            {"to": second["id"], "from": first["id"]},
        )
        with pytest.raises(Refused):
            deps.vault.get(secret_path(second, 1))
        admin.call("PUT", f"{credential_path(first)}/secret", json={"secret": NEWER})
        drain(relay)
        connection.execute(
            text(
                f"{copy} FROM public.stolen f WHERE t.credential_id = :id AND f.credential_id = :id AND t.version = 2"
            ),
            {"id": first["id"]},
        )
        connection.execute(text("DROP TABLE public.stolen"))

    with pytest.raises(Refused):
        deps.vault.get(secret_path(first, 2))


class Broken:
    """A vault in trouble, in front of a real one."""

    def __init__(self, behind: Local, trouble: Exception) -> None:
        self.behind, self.trouble, self.over = behind, trouble, False

    def put(self, path: SecretPath, secret: Secret) -> None:
        if not self.over:
            raise self.trouble
        self.behind.put(path, secret)

    def get(self, path: SecretPath) -> Secret:
        return self.behind.get(path)

    def destroy(self, path: SecretPath) -> None:
        self.behind.destroy(path)


def _with_vault(relay: Relay, deps: usecases.Deps, vault: Any) -> Relay:
    changed = usecases.Deps(deps.engine, deps.outbox, deps.keyring, vault, deps.fingerprint_key)
    return Relay(deps.outbox, relay.publisher, worker.ROUTES, worker.handlers(changed), worker.FAILURES)


def test_a_vault_that_is_down_burns_no_attempts_and_holds_up_nobody_else(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    vault = Broken(deps.vault, Unavailable())  # type: ignore[arg-type]
    broken = _with_vault(relay, deps, vault)
    credential = admin.credential(account_id)
    admin.post(f"/v1/accounts/{account_id}/disable", {"reason": "audit"})
    for _ in range(deps.outbox.attempt_limit + 5):
        broken.drain_once()
        with deps.engine.begin() as tx:
            tx.execute(text("UPDATE accounts.outbox SET available_at = now() WHERE status = 'pending'"))

    waiting = {row.event_type: (row.status, row.attempts, row.last_error) for row in events(deps, account_id)}
    vault.over = True
    drain(broken)

    assert waiting["credential.created"] == ("pending", 0, "vault_unavailable")
    assert waiting["account.updated"] == ("completed", 1, None)
    assert admin.get(credential_path(credential)).json["status"] == "active"


def test_a_vault_that_refuses_one_object_fails_that_row_at_the_limit_and_says_so(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, client: FlaskClient, identity: IdentityFixtures
) -> None:
    vault = Broken(deps.vault, Refused("policy"))  # type: ignore[arg-type]
    broken = _with_vault(relay, deps, vault)
    operator = bearer(identity.service_account(["credential:read"]).token)
    with deps.engine.begin() as tx:
        tx.execute(text("DELETE FROM accounts.outbox WHERE status = 'failed'"))  # of other tests
    credential = admin.credential(account_id)
    for _ in range(deps.outbox.attempt_limit):
        assert admin.get(credential_path(credential)).json["status"] == "pending"
        assert broken.drain_once() > 0
        with deps.engine.begin() as tx:
            tx.execute(text("UPDATE accounts.outbox SET available_at = now() WHERE status = 'pending'"))

    report = client.get("/v1/accounts/outbox/health", headers=operator).json
    [failed] = [entry for entry in report["entries"] if entry["status"] == "failed"]
    assert (failed["event_type"], failed["count"], failed["max_attempts"]) == ("credential.created", 1, 10)
    assert (report["failed"], report["oldest_failed_at"]) == (1, failed["oldest_created_at"])
    assert admin.get(credential_path(credential)).json["status"] == "invalid"

    vault.over = True  # the policy was repaired: an operator drives the row again
    with deps.engine.begin() as tx:
        [row] = deps.outbox.failed(tx)
        deps.outbox.redrive(tx, row["id"])
    drain(broken)
    assert admin.get(credential_path(credential)).json["status"] == "active"
    assert column(deps, "SELECT status FROM accounts.outbox WHERE id = :id", id=row["id"]) == ["failed"]


@pytest.mark.parametrize("trouble", ["a fault of any kind", "a lost worker"])
def test_a_credential_whose_row_failed_is_shown_as_invalid(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, trouble: str
) -> None:
    broken = _with_vault(relay, deps, Broken(deps.vault, ValueError("a bug")))  # type: ignore[arg-type]
    credential = admin.credential(account_id)
    with deps.engine.begin() as tx:
        last = deps.outbox.attempt_limit - 1
        tx.execute(text("UPDATE accounts.outbox SET attempts = :n WHERE status = 'pending'"), {"n": last})
    if trouble == "a lost worker":
        broken._claim()
        age_claims(deps.outbox, 6)
        broken._abandoned_at = 0.0
    broken.drain_once()

    [_, row] = events(deps, account_id)
    assert (row.status, admin.get(credential_path(credential)).json["status"]) == ("failed", "invalid")


def _append_refused(intents: Outbox, credential: dict[str, Any], version: int) -> None:
    """As intents do when a broker refuses a credential."""
    payload = {"account_id": credential["account_id"], "credential_id": credential["id"], "version": version}
    with intents.begin() as tx:
        intents.append(tx, Event("intent.accepted", {}))
        intents.append(tx, Event("credential.invalid", payload))


def _tell_refused(intents: Outbox, credential: dict[str, Any], version: int) -> None:
    _append_refused(intents, credential, version)
    with intents.engine.begin() as tx:
        claim = intents.claim(tx)
        intents.complete(tx, claim, [row.id for row in claim.rows])


def _until_invalid(admin: Caller, credential: dict[str, Any]) -> None:
    deadline = time.monotonic() + 60
    while admin.get(credential_path(credential)).json["status"] != "invalid":
        assert time.monotonic() < deadline, "nobody was woken"
        time.sleep(0.02)


@pytest.fixture
def intents(platform: Platform) -> Iterator[Outbox]:
    engine = db.engine(platform.database_url("intents"), pool_size=2, name="tests")
    yield Outbox(engine, "intents")
    engine.dispose()


def test_a_credential_that_the_broker_refuses_is_invalid_until_it_is_rotated(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, intents: Outbox
) -> None:
    feed = Feed(deps.engine, "accounts", "intents")
    refused, other = admin.credential(account_id), admin.credential(account_id)
    drain(relay)
    _tell_refused(intents, refused, 1)
    feed.drain(usecases.apply_intents_event)
    seen = [admin.get(credential_path(each)).json["status"] for each in (refused, other)]

    admin.call("PUT", f"{credential_path(refused)}/secret", json={"secret": NEWER})
    drain(relay)
    seen.append(admin.get(credential_path(refused)).json["status"])
    _tell_refused(intents, refused, 1)  # late: the version before
    feed.drain(usecases.apply_intents_event)
    seen.append(admin.get(credential_path(refused)).json["status"])

    assert seen == ["invalid", "active", "active", "active"]


def test_a_refused_credential_wakes_the_consumer(
    admin: Caller, account_id: str, relay: Relay, platform: Platform, intents: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "POLL_S", 600.0)
    queue_url = f"{platform.redis_url.rpartition('/')[0]}/7"  # where no other test leaves messages
    config = ServiceConfig.from_env(platform.environment("accounts", QUEUE_URL=queue_url))
    intents_relay = Relay(intents, Publisher(queue_url), intents_worker.ROUTES)
    with consuming(worker.consumer(config, "accounts-consumer"), worker.QUEUE, queue_url):
        for _ in range(3):
            credential = admin.credential(account_id)
            drain(relay)
            _append_refused(intents, credential, 1)
            intents_relay.drain_once()
            _until_invalid(admin, credential)


def test_the_consumer_process_marks_a_refused_credential_and_ends_cleanly(
    admin: Caller, account_id: str, relay: Relay, platform: Platform, intents: Outbox
) -> None:
    credential = admin.credential(account_id)
    drain(relay)
    environment = {**os.environ, **platform.environment("accounts")}
    consumer = subprocess.Popen([sys.executable, "-m", "accounts.worker", "consumer"], env=environment)
    try:
        _tell_refused(intents, credential, 1)
        _until_invalid(admin, credential)
        consumer.terminate()
        assert consumer.wait(60) == 0
    finally:
        consumer.kill()
        consumer.wait()


def test_a_sealed_request_that_was_tampered_with_is_that_rows_fault(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, platform: Platform
) -> None:
    first, second = admin.credential(account_id), admin.credential(account_id, NEWER)
    with platform.admin() as connection:
        connection.execute(
            text("""UPDATE accounts.sealed_secret t SET ciphertext = f.ciphertext, wrapped_key = f.wrapped_key
                    FROM accounts.sealed_secret f WHERE t.credential_id = :to AND f.credential_id = :from"""),
            {"to": second["id"], "from": first["id"]},
        )
    relay.drain_once()

    [_, good, bad] = events(deps, account_id)
    assert (good.status, bad.status, bad.last_error) == ("completed", "pending", "BrokenSeal")
    admin.call("PUT", f"{credential_path(second)}/secret", json={"secret": NEWER})
    drain(relay)
    assert opened_secret(deps, second["id"]) == NEWER
