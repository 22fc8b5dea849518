"""Who may do what: every endpoint, every kind of caller."""

from collections.abc import Callable
from typing import Any

import pytest

READ = [
    ("GET", "/symbols/AAPL", None),
    ("GET", "/symbols/AAPL/time", None),
    ("GET", "/symbols/AAPL/limits", None),
    ("GET", "/symbols", None),
    ("GET", "", None),
    ("GET", "/limits", None),
    ("POST", "/preview", {"command": {"type": "CANCEL", "payload": {}}}),
]
WRITE = [
    ("PUT", "/symbols/AAPL", {"manually_disabled": False}),
    ("PATCH", "/symbols/AAPL/time", {"trading_start": "09:30:00"}),
    ("PUT", "/symbols/AAPL/limits", {"max_quantity": "1"}),
    ("PUT", "", {"trading_state": "ACTIVE"}),
    ("PUT", "/limits", {"max_quantity": "1"}),
]
DELETE = [("DELETE", path, None) for _, path, _ in WRITE]

# What the caller gets on a paper account: (reading, writing).
EXPECTED = {
    "nobody": (401, 401),
    "a made-up key": (401, 401),
    "key and token": (400, 400),
    "admin": (200, 200),
    "member": (200, 403),
    "read_only": (200, 403),
    "user without organization": (403, 403),
    "admin elsewhere": (404, 404),
    "admin of the same organization without premium": (403, 403),
    "paper key": (200, 200),
    "paper key that reads controls": (200, 403),
    "paper key that edits controls": (403, 200),
    "paper key for intents only": (403, 403),
    "live key": (403, 403),
    "key elsewhere": (404, 404),
    "key without premium": (403, 403),
    "service account": (200, 200),
    "service account that reads": (200, 403),
    "service account that writes": (403, 200),
    "service account without scope": (403, 403),
    "service account without organization": (403, 403),
    "service account for another organization": (404, 404),
    "service account of an organization without premium": (403, 403),
}


@pytest.fixture(scope="module")
def callers(setting: Any, organization: Any) -> dict[str, tuple[dict[str, str], Any]]:
    """Each caller's headers, and the paper account they ask about."""
    identity = setting.identity
    account = setting.account(organization)
    elsewhere = identity.organization(entitlements=["controls_premium"])
    poor = identity.organization()
    poor_account = setting.account(poor)

    def bearer(token: str, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"} | more

    def key(*permissions: str) -> dict[str, str]:
        return {"x-api-key": identity.key(organization.id, "paper", permissions)}

    def service(scopes: list[str] | None, of: Any = organization) -> dict[str, str]:
        made = identity.service_account(scopes) if scopes is not None else identity.service_account()
        return bearer(made.token, **({"x-organization-id": str(of.id)} if of else {}))

    mine: dict[str, dict[str, str]] = {
        "nobody": {},
        "a made-up key": {"x-api-key": "tip_paper_" + "A" * 36},
        "key and token": {"x-api-key": organization.api_keys["paper"]} | bearer(organization.tokens["admin"]),
        "admin": bearer(organization.tokens["admin"]),
        "member": bearer(organization.tokens["member"]),
        "read_only": bearer(organization.tokens["read_only"]),
        "user without organization": bearer(identity.user_without_organization()),
        "admin elsewhere": bearer(elsewhere.tokens["admin"]),
        "paper key": {"x-api-key": organization.api_keys["paper"]},
        "paper key that reads controls": key("control:read"),
        "paper key that edits controls": key("control:edit"),
        "paper key for intents only": key("intent:read", "intent:edit"),
        "live key": {"x-api-key": organization.api_keys["live"]},
        "key elsewhere": {"x-api-key": elsewhere.api_keys["paper"]},
        "service account": service(None),
        "service account that reads": service(["control:read"]),
        "service account that writes": service(["control:write"]),
        "service account without scope": service(["intent:read", "account:write"]),
        "service account without organization": service(None, None),
        "service account for another organization": service(None, elsewhere),
    }
    theirs = {
        "admin of the same organization without premium": bearer(poor.tokens["admin"]),
        "key without premium": {"x-api-key": poor.api_keys["paper"]},
        "service account of an organization without premium": service(None, poor),
    }
    return {name: (headers, account) for name, headers in mine.items()} | {
        name: (headers, poor_account) for name, headers in theirs.items()
    }


@pytest.fixture(scope="module")
def ask(setting: Any, callers: Any) -> Callable[..., Any]:
    def asking(caller: str, method: str, path: str, body: Any) -> Any:
        headers, account = callers[caller]
        return setting.client.open(f"/v1/controls/accounts/{account}{path}", method=method, json=body, headers=headers)

    return asking


@pytest.mark.parametrize("caller", EXPECTED)
def test_every_endpoint_answers_every_caller_as_the_matrix_says(ask: Callable[..., Any], caller: str) -> None:
    reading, writing = EXPECTED[caller]
    for method, path, body in WRITE:  # something to read and to delete
        ask("admin", method, path, body)

    got = {(method, path): ask(caller, method, path, body) for method, path, body in READ + WRITE + DELETE}

    expected = {(method, path): reading for method, path, _ in READ}
    expected |= {(method, path): writing for method, path, _ in WRITE}
    expected |= {(method, path): 204 if writing == 200 else writing for method, path, _ in DELETE}
    assert {call: answer.status_code for call, answer in got.items()} == expected
    for answer in got.values():
        assert answer.status_code < 400 or answer.content_type == "application/problem+json"
        assert answer.status_code != 401 or "WWW-Authenticate" in answer.headers


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        ("live key", "forbidden"),
        ("member", "forbidden"),
        ("admin of the same organization without premium", "entitlement_required"),
        ("key without premium", "entitlement_required"),
        ("service account without organization", "organization_required"),
    ],
)
def test_a_refusal_says_what_is_missing(ask: Callable[..., Any], caller: str, code: str) -> None:
    answer = ask(caller, "PUT", "/symbols/AAPL", {"manually_disabled": True})

    assert (answer.status_code, answer.json["code"]) == (403, code)
    assert answer.json.get("entitlement") == ("controls_premium" if code == "entitlement_required" else None)


def test_an_unknown_account_and_a_foreign_one_look_the_same(setting: Any, organization: Any) -> None:
    foreign = setting.account(setting.identity.organization(entitlements=["controls_premium"]))
    mine = setting.controls(organization, foreign)
    bodies = []
    for account in (str(foreign), "00000000-0000-4000-8000-000000000000"):
        answer = mine.call("GET", f"/v1/controls/accounts/{account}/symbols/AAPL")
        bodies.append({**answer.json, "request_id": None, "instance": None, "status": answer.status_code})

    assert bodies[0] == bodies[1] and bodies[0]["status"] == 404


def test_the_account_is_looked_at_before_the_plan_and_the_plan_before_the_body(setting: Any, organization: Any) -> None:
    poor = setting.identity.organization()
    stranger = setting.controls(poor, setting.account(organization))
    owner = setting.controls(poor, setting.account(poor))
    nonsense = {"manually_disabled": "yes"}

    assert stranger.symbol("PUT", "A B", body=nonsense).status_code == 404
    assert owner.symbol("PUT", "A B", body=nonsense).status_code == 403
    assert setting.controls(organization, owner.account_id).symbol("PUT", "A", body=nonsense).status_code == 404


def test_a_live_account_is_for_live_keys(setting: Any, organization: Any) -> None:
    account = setting.account(organization, "live")

    def put(environment: str) -> int:
        headers = {"x-api-key": organization.api_keys[environment]}
        path = f"/v1/controls/accounts/{account}/symbols/AAPL"
        return int(setting.client.put(path, json={"manually_disabled": True}, headers=headers).status_code)

    assert (put("paper"), put("live")) == (403, 201)


ORGANIZATION = {
    "nobody": (401, 401),
    "admin": (200, 200),
    "member": (200, 403),
    "read_only": (200, 403),
    "user without organization": (403, 403),
    "admin of the same organization without premium": (403, 403),
    "paper key": (200, 403),
    "live key": (200, 403),
    "paper key for intents only": (403, 403),
    "service account": (200, 200),
    "service account that reads": (200, 403),
    "service account that writes": (403, 200),
    "service account without organization": (403, 403),
}


@pytest.mark.parametrize("caller", ORGANIZATION)
def test_the_organizations_switch_is_written_only_by_those_who_are_above_environments(
    setting: Any, callers: Any, caller: str
) -> None:
    path, body = "/v1/controls/organization", {"trading_state": "ACTIVE"}
    setting.client.put(path, json=body, headers=callers["admin"][0])
    headers = callers[caller][0]

    got = (
        setting.client.get(path, headers=headers).status_code,
        setting.client.put(path, json=body, headers=headers).status_code,
        setting.client.delete(path, headers=headers).status_code,
    )

    reading, writing = ORGANIZATION[caller]
    assert got == (reading, writing, 204 if writing == 200 else writing)
