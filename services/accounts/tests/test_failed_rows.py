"""Failed outbox rows: operators list them with the reason, and drive them again."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts.app import create_app
from chassis.outbox import Event, Outbox
from chassis.outbox.relay import Relay
from tip_testing.accounts_caller import Caller, bearer, drain
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.outbox import rows
from tip_testing.platform_plugin import Platform

PATH = "/v1/accounts/outbox/failed"


@pytest.fixture(scope="module")
def internal(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture(scope="module")
def client(platform: Platform, internal: Organization) -> FlaskClient:
    return create_app(
        platform.web_environment("accounts", INTERNAL_ORGANIZATIONS=str(internal.id), RATE_LIMIT_PER_MINUTE="1000000")
    ).test_client()


@pytest.fixture
def operator(client: FlaskClient, internal: Organization) -> Caller:
    return Caller(client, bearer(internal.tokens["admin"]))


def fail(outbox: Outbox, event_type: str = "account.updated", error: str = "ValueError", **payload: str) -> int:
    """The number of a new row that has failed, about an organization that nobody here is of."""
    about = {"organization_id": str(uuid4()), "account_id": str(uuid4()), **payload}
    with outbox.engine.begin() as tx:
        outbox.append(tx, Event(event_type, about, ordering_key=about["account_id"]))
        claim = outbox.claim(tx)
        [row] = claim.rows
        tx.execute(text("UPDATE accounts.outbox SET attempts = 3 WHERE id = :id"), {"id": row.id})
        assert outbox.retry(tx, claim, row.id, error) == "failed"
    return row.id


def redriven(caller: Caller, row_id: object) -> Any:
    return caller.post(f"{PATH}/{row_id}/redrive")


# Who may


@pytest.mark.parametrize("role", ["member", "read_only"])
def test_whoever_is_no_admin_is_refused(client: FlaskClient, internal: Organization, outbox: Outbox, role: str) -> None:
    caller = Caller(client, bearer(internal.tokens[role]))

    assert (caller.get(PATH).status_code, redriven(caller, fail(outbox)).status_code) == (403, 403)
    assert len(rows(outbox)) == 1


def test_an_admin_of_another_organization_is_refused_even_about_its_own_row(
    client: FlaskClient, identity: IdentityFixtures, outbox: Outbox
) -> None:
    other = identity.organization()
    caller = Caller(client, bearer(other.tokens["admin"]))
    row_id = fail(outbox, organization_id=str(other.id))

    answers = [caller.get(PATH), *(redriven(caller, named) for named in (row_id, 10**9, "not-an-id", "9" * 40))]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(403, "forbidden")] * 5
    assert len(rows(outbox)) == 1


def test_a_service_account_needs_the_scope_to_write(
    client: FlaskClient, identity: IdentityFixtures, outbox: Outbox
) -> None:
    row_id = fail(outbox)
    reader = Caller(client, bearer(identity.service_account(["credential:read", "account:write"]).token))
    writer = Caller(client, bearer(identity.service_account(["credential:write"]).token))

    assert (reader.get(PATH).status_code, redriven(reader, row_id).status_code) == (403, 403)
    assert (writer.get(PATH).status_code, redriven(writer, row_id).status_code) == (200, 200)


# The list


def test_a_failed_row_is_listed_with_its_reason_and_without_its_payload(operator: Caller, outbox: Outbox) -> None:
    ids = {name: str(uuid4()) for name in ("organization_id", "account_id", "credential_id")}
    row_id = fail(outbox, "credential.created", "BrokenSeal", **ids, more="payload-canary")
    [row] = rows(outbox)

    answer = operator.get(PATH)

    shown = {
        "id": row_id,
        "event_id": str(row.event_id),
        "event_type": "credential.created",
        **ids,
        "attempts": 3,
        "last_error": "BrokenSeal",
        "explanation": "a sealed secret was altered or moved, or is under another key",
        "created_at": row.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "failed_at": row.settled_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "redriven_as": None,
    }
    assert answer.json == {"data": [shown], "next_cursor": None}
    assert "canary" not in answer.text


def test_an_error_without_words_of_its_own_is_named(operator: Caller, outbox: Outbox) -> None:
    fail(outbox, error="ZeroDivisionError")

    assert operator.get(PATH).json["data"][0]["explanation"] == "the work of the row raised ZeroDivisionError"


def test_only_failed_rows_are_listed(operator: Caller, outbox: Outbox) -> None:
    failed = [fail(outbox), fail(outbox)]
    with outbox.engine.begin() as tx:
        for _ in range(3):
            outbox.append(tx, Event("account.created", {}))
        claim = outbox.claim(tx, 2)
        outbox.complete(tx, claim, [claim.rows[0].id])

    assert [row["id"] for row in operator.get(PATH).json["data"]] == failed


def test_the_list_has_pages_and_a_filter(operator: Caller, outbox: Outbox) -> None:
    failed = [fail(outbox) for _ in range(5)]
    for row_id in failed[:2]:
        assert redriven(operator, row_id).status_code == 200
    found: list[int] = []
    cursor = ""
    while cursor is not None:
        page = operator.get(f"{PATH}?limit=2" + (f"&next_cursor={cursor}" if cursor else "")).json
        found, cursor = found + [row["id"] for row in page["data"]], page["next_cursor"]

    assert found == failed
    assert [row["id"] for row in operator.get(f"{PATH}?redriven=true").json["data"]] == failed[:2]
    assert [row["id"] for row in operator.get(f"{PATH}?redriven=false").json["data"]] == failed[2:]


def test_a_cursor_is_of_its_filter_and_a_filter_is_one_of_two_words(operator: Caller, outbox: Outbox) -> None:
    for _ in range(2):
        fail(outbox)
    cursor = operator.get(f"{PATH}?limit=1").json["next_cursor"]

    answers = [
        operator.get(f"{PATH}?redriven=false&next_cursor={cursor}"),
        operator.get(f"{PATH}?redriven=perhaps"),
        operator.get(f"{PATH}?limit=0"),
        operator.get(f"{PATH}?after=1"),
    ]

    codes = ["bad_cursor", "bad_filter", "bad_limit", "unknown_query"]
    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(400, code) for code in codes]


# Driving a row again


def test_a_row_of_any_organization_is_driven_again_once(operator: Caller, outbox: Outbox) -> None:
    row_id = fail(outbox, "credential.updated")

    first, second = redriven(operator, row_id), redriven(operator, row_id)

    failed, copy = rows(outbox)
    assert (first.status_code, first.json["redriven_as"]) == (200, copy.id)
    assert (second.status_code, second.json) == (200, first.json), "a repetition has the same answer"
    assert (failed.status, copy.status, copy.redriven_from) == ("failed", "pending", row_id)
    assert copy.payload == failed.payload | {"event_id": str(copy.event_id)}
    assert (copy.event_type, copy.ordering_key) == (failed.event_type, failed.ordering_key)
    assert operator.get(f"{PATH}?redriven=true").json["data"] == [first.json]


def test_the_relay_delivers_what_was_driven_again(
    operator: Caller, outbox: Outbox, relay: Relay, platform: Platform
) -> None:
    row_id = fail(outbox, "account.updated")
    copy_id = redriven(operator, row_id).json["redriven_as"]

    drain(relay)

    with platform.admin() as connection:
        fed = text("SELECT event_id FROM accounts_api.feed WHERE payload ->> 'event_id' = CAST(event_id AS text)")
        delivered = set(connection.execute(fed).scalars())
    assert {row.event_id for row in rows(outbox) if row.id == copy_id} <= delivered
    assert [row.status for row in rows(outbox) if row.id in (row_id, copy_id)] == ["failed", "completed"]


def test_only_a_failed_row_is_driven_again(operator: Caller, outbox: Outbox) -> None:
    with outbox.engine.begin() as tx:
        outbox.append(tx, Event("account.created", {"organization_id": str(uuid4())}))
    [waiting] = rows(outbox)

    assert redriven(operator, waiting.id).status_code == 404
    assert len(rows(outbox)) == 1


@pytest.mark.parametrize(
    "name",
    ["0", "-1", "+1", "1.0", "1e3", "17", "x", "%00", "٣", str(2**63 - 1), str(2**63), "9" * 40, str(UUID(int=1))],
)
def test_what_names_no_failed_row_is_not_found(operator: Caller, outbox: Outbox, name: str) -> None:
    answer = redriven(operator, name)

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


def test_who_drove_a_row_again_is_in_the_services_log(
    operator: Caller, outbox: Outbox, internal: Organization, capsys: pytest.CaptureFixture[str]
) -> None:
    row_id = fail(outbox, more="payload-canary")
    capsys.readouterr()
    redriven(operator, row_id)
    redriven(operator, row_id)

    logged = [line for line in "".join(capsys.readouterr()).splitlines() if "platform_change" in line]
    assert len(logged) == 1, "a repetition changes nothing"
    assert all(word in logged[0] for word in ("outbox_row.redriven", str(row_id), "user"))
    assert "canary" not in logged[0]
