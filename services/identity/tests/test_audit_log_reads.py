"""The audit log as it is read: in pages, by filters, and as a file."""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

Headers = dict[str, str]
KEY = {"name": "Desk", "environment": "paper", "permissions": ["intent:read"]}


def at(organization: Organization) -> str:
    return f"/v1/organizations/{organization.id}/audit-entries"


def entries(client: FlaskClient, headers: Headers, path: str, **query: object) -> list[Any]:
    answer = client.get(path, query_string=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return list(answer.json["data"])


def test_the_log_is_read_in_pages_newest_first_without_a_gap(
    client: FlaskClient, organization: Organization, admin: Headers
) -> None:
    seen, query = [], {"limit": "3"}
    while True:
        page = client.get(at(organization), query_string=query, headers=admin).json
        seen += [entry["sequence"] for entry in page["data"]]
        if page["next_cursor"] is None:
            break
        query["next_cursor"] = page["next_cursor"]

    assert len(seen) > 6 and seen == list(range(len(seen), 0, -1))


def test_the_log_is_found_by_type_target_actor_and_time(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers
) -> None:
    client.post("/v1/api-keys", json=KEY, headers=admin)
    everything = entries(client, admin, at(organization))
    newest, path = everything[0], at(organization)

    assert entries(client, admin, path, type="organization.created") == everything[-1:]
    assert entries(client, admin, path, target=newest["target"]) == [newest]
    assert entries(client, admin, path, actor=identity.subject(organization.external_id, "admin")) == [newest]
    assert entries(client, admin, path, actor="by-hand") == everything[1:]
    assert entries(client, admin, path, **{"from": newest["created_at"]}) == [newest]
    assert entries(client, admin, path, to=newest["created_at"]) == everything[1:]
    assert entries(client, admin, path, type="api_key.created", actor="nobody") == []


@pytest.mark.parametrize(
    "query",
    ["type=everything", "type=service_account.created", "target=", "actor=%00", "from=yesterday", "to=2026-01-01",
     "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "other=1", "limit=0", "next_cursor=forged"],
)  # fmt: skip
def test_a_bad_filter_is_refused(client: FlaskClient, organization: Organization, admin: Headers, query: str) -> None:
    assert client.get(f"{at(organization)}?{query}", headers=admin).status_code == 400
    if "limit" not in query and "cursor" not in query:
        assert client.get(f"{at(organization)}/export?{query}", headers=admin).status_code == 400


def test_a_cursor_belongs_to_its_filters(client: FlaskClient, organization: Organization, admin: Headers) -> None:
    query = {"limit": "1", "type": "membership.updated"}
    cursor = client.get(at(organization), query_string=query, headers=admin).json["next_cursor"]

    again = {"next_cursor": cursor, "limit": "1"}
    assert client.get(at(organization), query_string=again, headers=admin).status_code == 400
    assert client.get(at(organization), query_string=query | again, headers=admin).status_code == 200


def test_an_export_holds_every_entry_once_oldest_first(
    client: FlaskClient, organization: Organization, admin: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.usecases.audit_log.ENTRIES_AT_ONCE", 2)

    answer = client.get(f"{at(organization)}/export", headers=admin)
    some = client.get(f"{at(organization)}/export?type=membership.updated", headers=admin)

    whole = entries(client, admin, at(organization))[::-1]
    assert answer.content_type == "application/jsonl"
    assert [json.loads(line) for line in answer.text.splitlines()] == whole
    chosen = [entry for entry in whole if entry["type"] == "membership.updated"]
    assert [json.loads(line) for line in some.text.splitlines()] == chosen


def test_an_export_is_paid_for_by_its_rows(
    platform: Platform, organization: Organization, admin: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.ratelimit.ROWS_PER_UNIT", 1)
    client = create_app(platform.web_environment("identity", RATE_LIMIT_PER_MINUTE="8")).test_client()

    assert client.get(f"{at(organization)}/export", headers=admin).status_code == 200
    assert client.get(f"{at(organization)}/export", headers=admin).status_code == 429
