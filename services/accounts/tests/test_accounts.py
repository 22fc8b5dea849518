"""Trading accounts over HTTP, as the contract has them."""

from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts import usecases
from accounts.app import create_app
from chassis.outbox.ddl import let_append
from tip_testing.accounts_caller import Caller, bearer, events
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

FIELDS = {
    "id",
    "organization_id",
    "name",
    "broker",
    "environment",
    "broker_account_id",
    "time_zone",
    "disabled",
    "disabled_reason",
    "created_at",
    "updated_at",
    "version",
    "closing",
    "flatten_excess",
}
NEW = {"name": "Main", "broker": "paper", "environment": "paper"}


def test_a_new_account_is_answered_with_where_it_is_and_what_it_is(admin: Caller, organization: Organization) -> None:
    answer = admin.post("/v1/accounts", {**NEW, "broker_account_id": "PA-1", "time_zone": "America/New_York"})

    assert (answer.status_code, answer.headers["ETag"]) == (201, '"1"')
    assert set(answer.json) == FIELDS
    assert answer.json["organization_id"] == str(organization.id)
    assert (answer.json["time_zone"], answer.json["broker_account_id"]) == ("America/New_York", "PA-1")
    assert (answer.json["disabled"], answer.json["disabled_reason"], answer.json["version"]) == (False, None, 1)
    assert admin.get(answer.headers["Location"]).json == answer.json


def test_an_account_has_excesses_flattened_only_if_it_says_so(admin: Caller) -> None:
    account = admin.account()
    assert account["flatten_excess"] is False

    changed = admin.call("PATCH", f"/v1/accounts/{account['id']}", json={"flatten_excess": True})

    assert changed.json["flatten_excess"] is True and admin.account(flatten_excess=True)["flatten_excess"] is True


def test_a_time_zone_left_out_is_utc(admin: Caller) -> None:
    assert admin.account()["time_zone"] == "UTC"


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"name": ""}, "/name", "length"),
        ({"name": "x" * 121}, "/name", "length"),
        ({"name": "a\nb"}, "/name", "characters"),
        ({"broker": "robin"}, "/broker", "choice"),
        ({"environment": "demo"}, "/environment", "choice"),
        ({"time_zone": "Mars/Olympus"}, "/time_zone", "time_zone"),
        ({"time_zone": "localtime"}, "/time_zone", "time_zone"),
        ({"broker_account_id": "a b"}, "/broker_account_id", "pattern"),
        ({"organization_id": str(uuid4())}, "/organization_id", "unknown_field"),
        ({"version": 7}, "/version", "unknown_field"),
        ({"disabled": True}, "/disabled", "unknown_field"),
    ],
)
def test_what_cannot_be_an_account_is_named_by_a_pointer(
    admin: Caller, change: dict[str, Any], pointer: str, code: str
) -> None:
    answer = admin.post("/v1/accounts", {**NEW, **change})

    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json["errors"]] == [(pointer, code)]


def test_every_change_and_its_event_are_written_together(
    admin: Caller, deps: usecases.Deps, organization: Organization
) -> None:
    account = admin.account()
    path = f"/v1/accounts/{account['id']}"
    admin.call("PATCH", path, json={"name": "Second"})
    admin.post(f"{path}/disable", {"reason": "audit"})
    admin.post(f"{path}/enable")
    admin.call("DELETE", path)

    published = events(deps, account["id"])

    assert [row.event_type for row in published] == ["account.created", *["account.updated"] * 3, "account.deleted"]
    assert [row.payload["version"] for row in published] == [1, 2, 3, 4, 5]
    assert set(published[0].payload) == {
        "event_id",
        "event_type",
        "occurred_at",
        "organization_id",
        "account_id",
        "version",
    }
    assert published[0].payload["event_id"] == str(published[0].event_id)
    assert published[0].payload["occurred_at"].endswith("Z")
    assert published[0].payload["organization_id"] == str(organization.id)


def test_a_change_whose_event_cannot_be_queued_is_not_made(
    platform: Platform, admin: Caller, deps: usecases.Deps
) -> None:
    account = admin.account()
    with platform.admin() as connection:
        connection.execute(text("REVOKE INSERT ON accounts.outbox FROM tip_accounts_web"))
        try:
            answer = admin.call("PATCH", f"/v1/accounts/{account['id']}", json={"name": "Second"})
        finally:
            connection.execute(text(let_append("accounts", "tip_accounts_web")))

    assert answer.status_code == 500
    assert admin.get(f"/v1/accounts/{account['id']}").json == account


def test_a_change_that_changes_nothing_publishes_nothing(admin: Caller, deps: usecases.Deps) -> None:
    account = admin.account()

    answer = admin.call("PATCH", f"/v1/accounts/{account['id']}", json={"name": account["name"]})

    assert (answer.status_code, answer.json) == (200, account)
    assert len(events(deps, account["id"])) == 1


@pytest.mark.parametrize("field", ["broker", "environment", "id", "disabled"])
def test_what_may_not_change_is_refused(admin: Caller, field: str) -> None:
    account = admin.account()

    answer = admin.call("PATCH", f"/v1/accounts/{account['id']}", json={field: account[field]})

    assert (answer.status_code, answer.json["errors"][0]["pointer"]) == (422, f"/{field}")


def test_an_empty_change_is_refused(admin: Caller) -> None:
    assert admin.call("PATCH", f"/v1/accounts/{admin.account()['id']}", json={}).status_code == 422


def test_a_brokers_account_id_can_be_taken_away_again(admin: Caller) -> None:
    account = admin.account(broker_account_id="PA-1")

    answer = admin.call("PATCH", f"/v1/accounts/{account['id']}", json={"broker_account_id": None})

    assert answer.json["broker_account_id"] is None


def test_disabling_says_why_and_enabling_forgets_it(admin: Caller) -> None:
    path = f"/v1/accounts/{admin.account()['id']}"

    disabled = admin.post(f"{path}/disable", {"reason": "audit"})
    enabled = admin.post(f"{path}/enable")

    assert (disabled.json["disabled"], disabled.json["disabled_reason"]) == (True, "audit")
    assert (enabled.json["disabled"], enabled.json["disabled_reason"], enabled.json["version"]) == (False, None, 3)


def test_disabling_needs_no_body_and_twice_is_once(admin: Caller, deps: usecases.Deps) -> None:
    account = admin.account()

    answers = [admin.call("POST", f"/v1/accounts/{account['id']}/disable") for _ in range(2)]

    assert [answer.json["version"] for answer in answers] == [2, 2]
    assert answers[0].json["disabled_reason"] is None
    assert len(events(deps, account["id"])) == 2


@pytest.mark.parametrize(
    ("method", "end", "body"),
    [("PATCH", "", {"name": "Second"}), ("POST", "/disable", {}), ("POST", "/enable", {}), ("DELETE", "", None)],
)
def test_a_version_that_is_not_the_present_one_changes_nothing(
    admin: Caller, method: str, end: str, body: dict[str, Any] | None
) -> None:
    account = admin.account()
    path = f"/v1/accounts/{account['id']}"

    refused = [admin.call(method, path + end, json=body, headers={"If-Match": tag}) for tag in ('"7"', "W/x", '"1x"')]
    unchanged = admin.get(path).json
    accepted = admin.call(method, path + end, json=body, headers={"If-Match": '"1"'})

    assert [(answer.status_code, answer.json["code"]) for answer in refused] == [(412, "precondition_failed")] * 3
    assert unchanged == account
    assert accepted.status_code in (200, 204)


def test_a_deleted_account_is_nowhere(admin: Caller, platform: Platform) -> None:
    account = admin.account()
    path = f"/v1/accounts/{account['id']}"

    assert admin.call("DELETE", path).status_code == 204
    with platform.admin() as connection:
        seen = connection.execute(
            text("SELECT count(*) FROM accounts_api.account WHERE id = :id"), {"id": account["id"]}
        ).scalar_one()

    assert (admin.get(path).status_code, admin.call("DELETE", path).status_code, seen) == (404, 404, 0)
    assert account["id"] not in [listed["id"] for listed in admin.get("/v1/accounts").json["data"]]


def test_pages_hold_every_account_once_in_order(admin: Caller) -> None:
    made = [admin.account(name=f"Account {number}")["id"] for number in range(7)]

    listed, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        query = {"limit": "3"} | ({"next_cursor": cursor} if cursor else {})
        page = admin.get("/v1/accounts", query_string=query).json
        listed += [account["id"] for account in page["data"]]
        cursor, pages = page["next_cursor"], pages + 1

    assert (listed, pages) == (made, 3)


def test_a_cursor_means_nothing_to_another_organization_or_list(
    admin: Caller, client: FlaskClient, identity: IdentityFixtures
) -> None:
    other = Caller(client, bearer(identity.organization().tokens["admin"]))
    account_id = admin.account()["id"]
    admin.account()
    cursor = admin.get("/v1/accounts?limit=1").json["next_cursor"]

    answers = [
        other.get("/v1/accounts", query_string={"next_cursor": cursor}),
        admin.get(f"/v1/accounts/{account_id}/credentials", query_string={"next_cursor": cursor}),
        admin.get("/v1/accounts", query_string={"next_cursor": cursor[:-1] + ("A" if cursor[-1] != "A" else "B")}),
    ]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(400, "bad_cursor")] * 3


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "limit=1&limit=2", "page=2", "limit=%D9%A1"])
def test_a_query_that_is_not_understood_is_refused(admin: Caller, query: str) -> None:
    assert admin.get(f"/v1/accounts?{query}").status_code == 400


def test_a_key_sees_and_touches_accounts_of_its_own_environment_only(
    admin: Caller, client: FlaskClient, organization: Organization
) -> None:
    paper, live = admin.account("paper"), admin.account("live")
    key = Caller(client, {"x-api-key": organization.api_keys["paper"]})
    path = f"/v1/accounts/{live['id']}"

    refused = [
        key.get(path),
        key.call("PATCH", path, json={"name": "x"}),
        key.post(f"{path}/disable", {}),
        key.call("DELETE", path),
        key.get(f"{path}/credentials"),
        key.post("/v1/accounts", {**NEW, "environment": "live"}),
    ]

    assert [account["id"] for account in key.get("/v1/accounts").json["data"]] == [paper["id"]]
    assert {(answer.status_code, answer.json["code"]) for answer in refused} == {(403, "forbidden")}
    assert admin.get(path).json == live


def test_a_rehearsal_can_be_switched_off(platform: Platform, organization: Organization) -> None:
    strict = create_app(platform.web_environment("accounts", LIVE_REHEARSAL="false")).test_client()
    admin = Caller(strict, bearer(organization.tokens["admin"]))

    rehearsal = admin.post("/v1/accounts", {**NEW, "environment": "live"})
    serious = admin.post("/v1/accounts", {**NEW, "environment": "live", "broker": "alpaca"})

    assert (rehearsal.status_code, rehearsal.json["code"], serious.status_code) == (422, "rehearsal_off", 201)


@pytest.mark.parametrize("reader", ["intents", "stream_gateway", "controls_web", "intents_web"])
def test_other_services_read_accounts_and_change_nothing(admin: Caller, platform: Platform, reader: str) -> None:
    account = admin.account(time_zone="Asia/Tokyo")
    with platform.admin() as connection:
        connection.execute(text(f"SET ROLE tip_{reader}"))
        connection.execute(text(f"SET tip.organizations = '{{{account['organization_id']}}}'"))
        row = connection.execute(text("SELECT * FROM accounts_api.account WHERE id = :id"), {"id": account["id"]}).one()
        privileges = connection.execute(
            text("SELECT has_table_privilege('accounts_api.account', 'UPDATE, DELETE, INSERT')")
        ).scalar_one()

    assert list(row._mapping) == [
        "id",
        "organization_id",
        "name",
        "broker",
        "environment",
        "broker_account_id",
        "time_zone",
        "disabled",
        "disabled_reason",
        "version",
    ]
    assert (row.time_zone, row.version, privileges) == ("Asia/Tokyo", 1, False)
