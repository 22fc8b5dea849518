"""GET /v1/accounts/outbox/health: who may call it and what it says, the specification's tables row by row."""

from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from accounts import model
from accounts.app import create_app
from chassis.outbox import Event, Outbox
from tip_testing.accounts_caller import Caller, bearer
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .outbox_report import PATH, TOTALS, expected_report


@pytest.fixture(scope="module")
def internal(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture(scope="module")
def client(platform: Platform, internal: Organization) -> FlaskClient:
    configured = f"{uuid4()}, {internal.id}"
    return create_app(platform.web_environment("accounts", INTERNAL_ORGANIZATIONS=configured)).test_client()


# Who may call


def test_a_client_credential_with_the_scope_may_call(operator: Caller) -> None:
    assert operator.get(PATH).status_code == 200


def test_an_admin_of_an_internal_organization_may_call(client: FlaskClient, internal: Organization) -> None:
    assert Caller(client, bearer(internal.tokens["admin"])).get(PATH).status_code == 200


def _refused(client: FlaskClient, headers: dict[str, str]) -> tuple[int, str]:
    answer = client.get(PATH, headers=headers)
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.text and "{" not in answer.text
    return answer.status_code, answer.text


@pytest.mark.parametrize("key", ["paper", "live", "paper_read_only"])
def test_an_api_key_is_refused_with_401_even_of_an_internal_organization(
    client: FlaskClient, internal: Organization, key: str
) -> None:
    assert _refused(client, {"x-api-key": internal.api_keys[key]})[0] == 401


def test_a_user_without_organization_is_refused_with_401(client: FlaskClient, identity: IdentityFixtures) -> None:
    assert _refused(client, bearer(identity.user_without_organization()))[0] == 401


def test_a_token_for_an_organization_that_is_not_the_callers_is_refused_with_403(
    platform: Platform, client: FlaskClient, identity: IdentityFixtures, internal: Organization
) -> None:
    mine, closed = identity.organization(), identity.organization()
    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.organization SET disabled = true WHERE id = :id"), {"id": closed.id})
    subject = identity.subject(mine.external_id, "admin")

    for named in (internal.external_id, "org-of-nobody"):
        assert _refused(client, bearer(identity.user_token(subject, named, "admin")))[0] == 403
    assert _refused(client, bearer(closed.tokens["admin"]))[0] == 403


def test_no_credential_and_a_bad_one_are_refused_with_401(client: FlaskClient) -> None:
    assert _refused(client, {})[0] == _refused(client, bearer("x.y.z"))[0] == 401


def test_a_client_credential_without_the_scope_is_refused_with_403(
    client: FlaskClient, identity: IdentityFixtures
) -> None:
    others = identity.service_account(["account:read", "account:write", "credential:write", "intent:read"])

    assert _refused(client, bearer(others.token))[0] == 403


def test_an_admin_of_another_organization_is_refused_with_403(client: FlaskClient, identity: IdentityFixtures) -> None:
    assert _refused(client, bearer(identity.organization().tokens["admin"]))[0] == 403


@pytest.mark.parametrize("role", ["member", "read_only"])
def test_whoever_is_no_admin_is_refused_with_403(client: FlaskClient, internal: Organization, role: str) -> None:
    assert _refused(client, bearer(internal.tokens[role]))[0] == 403


def test_an_internal_organization_named_in_a_header_helps_nobody(
    client: FlaskClient, identity: IdentityFixtures, internal: Organization
) -> None:
    assert _refused(client, bearer(identity.organization().tokens["admin"], internal.id))[0] == 403


def test_too_many_requests_are_refused_with_429(platform: Platform, identity: IdentityFixtures) -> None:
    strict = create_app(platform.web_environment("accounts", RATE_LIMIT_PER_MINUTE="2")).test_client()
    token = identity.service_account(["credential:read"]).token

    statuses = [strict.get(PATH, headers=bearer(token)).status_code for _ in range(2)]
    status, _ = _refused(strict, bearer(token))

    assert (statuses, status) == ([200, 200], 429)


def test_an_error_while_reading_the_queue_is_a_plain_500(
    platform: Platform, client: FlaskClient, operator: Caller
) -> None:
    with platform.admin() as connection:
        connection.execute(text("REVOKE SELECT ON accounts.outbox_head FROM tip_accounts_web"))
        try:
            status, body = _refused(client, operator.headers)
        finally:
            connection.execute(text("GRANT SELECT ON accounts.outbox_head TO tip_accounts_web"))

    assert (status, "outbox_head" in body) == (500, False)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_another_method_is_refused_in_plain_text(client: FlaskClient, operator: Caller, method: str) -> None:
    answer = operator.call(method, PATH)

    assert (answer.status_code, answer.mimetype) == (405, "text/plain")


# What it says


def test_an_empty_queue(operator: Caller, outbox: Outbox) -> None:
    assert operator.get(PATH).json == {
        "entries": [],
        **dict.fromkeys((*TOTALS, "redriven"), 0),
        "oldest_claim_at": None,
        "oldest_failed_at": None,
        "oldest_pending_at": None,
    }


def _in_every_state(outbox: Outbox) -> None:
    """Two rows of each type and status, each type with a fault of its own before."""
    for event_type in model.EVENT_TYPES:
        with outbox.engine.begin() as tx:
            for _ in range(6):
                outbox.append(tx, Event(event_type, {"account_id": "a-canary", "organization_id": "o-canary"}))
        with outbox.engine.begin() as tx:
            claim = outbox.claim(tx)
            done, lost = [row.id for row in claim.rows[:2]], [row.id for row in claim.rows[2:4]]
            outbox.complete(tx, claim, done)
            for row_id in lost:
                tx.execute(text("UPDATE accounts.outbox SET attempts = 3 WHERE id = :id"), {"id": row_id})
                outbox.retry(tx, claim, row_id, "error-canary")
        with outbox.engine.begin() as tx:
            for _ in range(2):
                outbox.append(tx, Event(event_type, {}))
            tx.execute(
                text("UPDATE accounts.outbox SET available_at = now() + interval '1 h' WHERE status = 'pending'")
            )


def test_one_entry_for_each_status_and_type_that_has_rows_and_totals_made_of_them(
    operator: Caller, outbox: Outbox
) -> None:
    _in_every_state(outbox)

    report = operator.get(PATH).json

    pairs = [(entry["status"], entry["event_type"]) for entry in report["entries"]]
    assert sorted(pairs) == sorted((status, kind) for status in TOTALS for kind in model.EVENT_TYPES)
    assert {entry["count"] for entry in report["entries"]} == {2}
    assert {total: report[total] for total in TOTALS} == dict.fromkeys(TOTALS, 12)
    assert report == expected_report(outbox)


def test_a_failed_row_that_was_driven_again_is_counted_apart(operator: Caller, outbox: Outbox) -> None:
    _in_every_state(outbox)
    with outbox.engine.begin() as tx:
        failed = [row.id for row in outbox.failed(tx)]
        assert outbox.redrive(tx, failed[0]) and outbox.redrive(tx, failed[0], again=True)

    report = operator.get(PATH).json

    assert (report["failed"], report["redriven"]) == (12, 1), "it stays failed, and has an answer"


def test_the_report_holds_the_specified_fields_and_how_many_were_driven_again(operator: Caller, outbox: Outbox) -> None:
    _in_every_state(outbox)

    answer = operator.get(PATH)

    totals = {"entries", *TOTALS, "oldest_claim_at", "oldest_failed_at", "oldest_pending_at"}
    assert set(answer.json) == totals | {"redriven"}
    for entry in answer.json["entries"]:
        assert set(entry) == {
            "status",
            "event_type",
            "count",
            "oldest_created_at",
            "max_attempts",
            "oldest_claimed_at",
        }
        assert (entry["oldest_claimed_at"] is None) == (entry["status"] != "processing")
    assert "canary" not in answer.text


steps = st.lists(
    st.sampled_from(["append", "claim", "complete", "retry", "release", "bury", "prune", "redrive", "roll_up"]),
    min_size=1,
    max_size=30,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, data=st.data())
def test_whatever_happens_to_the_queue_the_report_is_what_the_rows_say(
    operator: Caller, outbox: Outbox, monkeypatch: pytest.MonkeyPatch, steps: list[str], data: st.DataObject
) -> None:
    monkeypatch.setattr("chassis.outbox.store.BACKLOG", 1)  # every backlog is worth counting once, a little at a time
    monkeypatch.setattr("chassis.outbox.store.COUNTED_AT_ONCE", 2)
    claims: list[Any] = []
    for step in steps:
        with outbox.engine.begin() as tx:
            _do(outbox, tx, step, claims, data)

    assert operator.get(PATH).json == expected_report(outbox)


def _do(outbox: Outbox, tx: Connection, step: str, claims: list[Any], data: st.DataObject) -> None:
    if step == "append":
        for event_type in data.draw(st.lists(st.sampled_from(model.EVENT_TYPES), min_size=1, max_size=4)):
            outbox.append(tx, Event(event_type, {}, ordering_key=data.draw(st.sampled_from([None, "k"]))))
    elif step == "claim":
        tx.execute(text("UPDATE accounts.outbox SET available_at = now() - interval '1 s'"))
        claims.append(outbox.claim(tx, batch=data.draw(st.integers(1, 5))))
    elif step == "bury":
        tx.execute(text("UPDATE accounts.outbox SET claimed_at = claimed_at - interval '6 s'"))
        outbox.fail_abandoned(tx)
    elif step == "prune":
        outbox.prune(tx, days=0, batch=data.draw(st.integers(1, 5)))
    elif step == "roll_up":
        outbox.roll_up(tx)
    elif step == "redrive":
        for row in outbox.failed(tx):
            outbox.redrive(tx, row.id)
    elif claims:
        _settle(outbox, tx, step, claims[-1])


def _settle(outbox: Outbox, tx: Connection, step: str, claim: Any) -> None:
    ids = [row.id for row in claim.rows]
    if step == "complete":
        outbox.complete(tx, claim, ids[::2])
    elif step == "release":
        outbox.release(tx, claim, ids, delay=0, error="down")
    else:
        for row_id in ids:
            outbox.retry(tx, claim, row_id, "fault")
