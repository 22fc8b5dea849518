"""A credential is tested on request, and stays what it is until the broker has answered."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts import usecases
from accounts.app import create_app
from chassis import db
from chassis.feed import Feed
from chassis.outbox import Event, Outbox
from chassis.outbox.relay import Relay
from tip_testing.accounts_caller import NEWER, Caller, bearer, column, credential_path, drain, events
from tip_testing.identity_fixtures import Organization
from tip_testing.platform_plugin import Platform

Publish = Callable[..., None]


@pytest.fixture
def intents(platform: Platform) -> Iterator[Outbox]:
    engine = db.engine(platform.database_url("intents"), pool_size=2, name="tests")
    yield Outbox(engine, "intents")
    engine.dispose()


@pytest.fixture
def publish(intents: Outbox, deps: usecases.Deps) -> Publish:
    """An event of intents about a credential, which accounts applies."""
    feed = Feed(deps.engine, "accounts", "intents")

    def run(event_type: str, credential: dict[str, Any], version: int = 1, **more: str) -> None:
        payload = {"account_id": credential["account_id"], "credential_id": credential["id"], "version": version}
        with intents.begin() as tx:
            intents.append(tx, Event(event_type, payload | more))
        with intents.engine.begin() as tx:
            claim = intents.claim(tx)
            intents.complete(tx, claim, [row.id for row in claim.rows])
        feed.drain(usecases.apply_intents_event)

    return run


@pytest.fixture
def credential(admin: Caller, account_id: str, relay: Relay, publish: Publish) -> dict[str, Any]:
    """An active one."""
    made = admin.credential(account_id)
    drain(relay)
    publish("credential.valid", made)
    found: dict[str, Any] = admin.get(credential_path(made)).json
    assert (found["status"], found["test_status"], found["tested_at"]) == ("active", None, None)
    return found


def request(admin: Caller, credential: dict[str, Any]) -> Any:
    answer = admin.post(f"{credential_path(credential)}/test")
    assert answer.status_code == 202, answer.text
    return answer.json


def awaited_test(deps: usecases.Deps, credential: dict[str, Any]) -> str | None:
    """The test that intents are to make."""
    [found] = column(deps, "SELECT test_id FROM accounts_api.credential WHERE id = :id", id=credential["id"])
    return str(found) if found else None


def state(admin: Caller, credential: dict[str, Any]) -> tuple[str, str | None]:
    found = admin.get(credential_path(credential)).json
    assert (found["tested_at"] is None) == (found["test_status"] in (None, "pending"))
    return found["status"], found["test_status"]


def test_an_active_credential_stays_active_while_it_is_tested(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any]
) -> None:
    before = len(events(deps, credential["account_id"]))

    shown = request(admin, credential)

    assert shown == credential | {"test_status": "pending"}
    [event] = events(deps, credential["account_id"])[before:]
    assert (event.event_type, event.payload["credential_id"]) == ("credential.updated", credential["id"])
    assert event.payload["version"] == credential["version"]


@pytest.mark.parametrize(("outcome", "status"), [("accepted", "active"), ("refused", "invalid"), ("failed", "active")])
def test_what_comes_of_the_test_is_recorded(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any], publish: Publish, outcome: str, status: str
) -> None:
    request(admin, credential)

    publish("credential.tested", credential, test_id=awaited_test(deps, credential) or "", outcome=outcome)

    assert state(admin, credential) == (status, outcome)
    assert awaited_test(deps, credential) is None, "it is not made again"


@pytest.mark.parametrize(("outcome", "status"), [("accepted", "active"), ("refused", "invalid"), ("failed", "invalid")])
def test_an_invalid_credential_is_active_again_if_the_broker_accepts_it(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any], publish: Publish, outcome: str, status: str
) -> None:
    publish("credential.invalid", credential)
    assert request(admin, credential)["status"] == "invalid"

    publish("credential.tested", credential, test_id=awaited_test(deps, credential) or "", outcome=outcome)

    assert state(admin, credential) == (status, outcome)


def test_a_result_counts_once_and_only_for_its_test(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any], publish: Publish
) -> None:
    request(admin, credential)
    first = awaited_test(deps, credential) or ""
    publish("credential.tested", credential, test_id=str(uuid4()), outcome="refused")
    seen = [state(admin, credential)]
    publish("credential.tested", credential, test_id=first, outcome="accepted")
    publish("credential.tested", credential, test_id=first, outcome="refused")
    seen.append(state(admin, credential))
    request(admin, credential)
    publish("credential.tested", credential, test_id=first, outcome="refused")
    seen.append(state(admin, credential))

    assert seen == [("active", "pending"), ("active", "accepted"), ("active", "pending")]


def test_while_a_test_is_awaited_there_is_no_other(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any]
) -> None:
    request(admin, credential)
    first = awaited_test(deps, credential)
    before = len(events(deps, credential["account_id"]))

    request(admin, credential)

    assert awaited_test(deps, credential) == first
    assert len(events(deps, credential["account_id"])) == before + 1, "should the first event have been lost"


def test_a_new_secret_forgets_the_test_of_the_one_before(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any], publish: Publish
) -> None:
    request(admin, credential)
    first = awaited_test(deps, credential) or ""
    admin.call("PUT", f"{credential_path(credential)}/secret", json={"secret": NEWER})

    publish("credential.tested", credential, test_id=first, outcome="refused")

    assert state(admin, credential) == ("pending", None)


def test_a_pending_credential_is_being_tested_already(admin: Caller, account_id: str, deps: usecases.Deps) -> None:
    made = admin.credential(account_id)
    before = len(events(deps, account_id))

    assert request(admin, made) == made
    assert len(events(deps, account_id)) == before


def test_without_a_secret_in_the_vault_the_test_has_failed(admin: Caller, account_id: str, deps: usecases.Deps) -> None:
    made = admin.credential(account_id)
    with deps.engine.begin() as tx:
        usecases.give_up(tx, {"credential_id": made["id"]})

    shown = request(admin, made)

    assert (shown["status"], shown["test_status"]) == ("invalid", "failed") and shown["tested_at"]
    assert awaited_test(deps, made) is None


def test_a_deleted_credential_is_not_tested(
    admin: Caller, deps: usecases.Deps, credential: dict[str, Any], publish: Publish
) -> None:
    request(admin, credential)
    awaited = awaited_test(deps, credential) or ""
    admin.call("DELETE", credential_path(credential))

    publish("credential.tested", credential, test_id=awaited, outcome="accepted")

    assert admin.post(f"{credential_path(credential)}/test").status_code == 404
    assert column(deps, "SELECT status FROM accounts.credential WHERE id = :id", id=credential["id"]) == ["revoked"]


def test_a_test_at_a_broker_that_is_no_longer_installed_is_refused(
    admin: Caller, platform: Platform, credential: dict[str, Any]
) -> None:
    with platform.admin() as connection:
        gone = text("UPDATE accounts.account SET broker = 'gone' WHERE id = :id")
        connection.execute(gone, {"id": credential["account_id"]})

    answer = admin.post(f"{credential_path(credential)}/test")

    assert (answer.status_code, answer.json["code"]) == (409, "unknown_broker")


def test_a_test_costs_eleven_units(platform: Platform, organization: Organization, credential: dict[str, Any]) -> None:
    strict: FlaskClient = create_app(platform.web_environment("accounts", RATE_LIMIT_PER_MINUTE="20")).test_client()
    caller = Caller(strict, bearer(organization.tokens["member"]))
    admin = Caller(strict, bearer(organization.tokens["admin"]))

    path = f"{credential_path(credential)}/test"
    assert [admin.post(path).status_code for _ in range(2)] == [202, 429]
    assert caller.post(path).status_code == 403, "who may not is not charged for it"
