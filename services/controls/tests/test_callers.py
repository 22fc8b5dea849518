"""Who may do what: every endpoint, every kind of caller."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.model import Bounds
from tip_testing.caller_matrix import Row, differences, uncovered

READ = [
    ("GET", "/symbols/{symbol}", None),
    ("GET", "/symbols/{symbol}/time", None),
    ("GET", "/symbols/{symbol}/limits", None),
    ("GET", "/symbols", None),
    ("GET", "", None),
    ("GET", "/limits", None),
    ("GET", "/history", None),
    ("POST", "/preview", {"command": {"type": "CANCEL", "payload": {}}}),
]
WRITE = [
    ("PUT", "/symbols/{symbol}", {"manually_disabled": False}),
    ("PATCH", "/symbols/{symbol}/time", {"trading_start": "09:30:00"}),
    ("PUT", "/symbols/{symbol}/limits", {"max_quantity": "1"}),
    ("PUT", "", {"trading_state": "ACTIVE"}),
    ("PUT", "/limits", {"max_quantity": "1"}),
]
DELETE = [("DELETE", path, None) for _, path, _ in WRITE]
ORGANIZATION_PATH = "/v1/controls/organization"

# What the caller gets on a paper account: (reading, writing).
EXPECTED = {
    "nobody": (401, 401),
    "a made-up key": (401, 401),
    "key and token": (400, 400),
    "admin": (200, 200),
    "member": (200, 403),
    "read_only": (200, 403),
    "user without organization": (403, 403),
    "admin of another organization": (404, 404),
    "paper key": (200, 200),
    "paper key that reads controls": (200, 403),
    "paper key that edits controls": (403, 200),
    "paper key for intents only": (403, 403),
    "live key": (403, 403),
    "key bounded to this account": (200, 200),
    "key bounded to another account": (404, 404),
    "key of another organization": (404, 404),
    "service account": (200, 403),
    "service account that reads": (200, 403),
    "service account that writes": (403, 403),
    "service account without scope": (403, 403),
    "service account without organization": (403, 403),
    "service account for another organization": (404, 403),
}
# The same for callers of an organization that does not pay for controls, about its own account: (reading, writing,
# deleting). It has nothing to delete, but it might have had.
WITHOUT_PREMIUM = {
    "admin of the same organization without premium": (403, 403, 404),
    "key without premium": (403, 403, 404),
    "service account of an organization without premium": (403, 403, 403),
}


@pytest.fixture(scope="module")
def callers(setting: Any, organization: Any) -> dict[str, tuple[dict[str, str], Any]]:
    """Each caller's headers, and the paper account they name."""
    identity = setting.identity
    account = setting.account(organization)
    other = identity.organization(entitlements=["controls_premium"])
    poor = identity.organization()
    poor_account = setting.account(poor)

    def bearer(token: str, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"} | more

    def key(*permissions: str) -> dict[str, str]:
        return {"x-api-key": identity.key(organization.id, "paper", permissions)}

    def bounded(seen: Any) -> dict[str, str]:
        return {"x-api-key": identity.key(organization.id, "paper", bounds=Bounds(accounts=(seen,)))}

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
        "admin of another organization": bearer(other.tokens["admin"]),
        "paper key": {"x-api-key": organization.api_keys["paper"]},
        "paper key that reads controls": key("control:read"),
        "paper key that edits controls": key("control:edit"),
        "paper key for intents only": key("intent:read", "intent:edit"),
        "live key": {"x-api-key": organization.api_keys["live"]},
        "key bounded to this account": bounded(account),
        "key bounded to another account": bounded(setting.account(organization)),
        "key of another organization": {"x-api-key": other.api_keys["paper"]},
        "service account": service(None),
        "service account that reads": service(["control:read"]),
        "service account that writes": service(["control:write"]),
        "service account without scope": service(["intent:read", "account:write"]),
        "service account without organization": service(None, None),
        "service account for another organization": service(None, other),
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
def call(setting: Any, callers: Any) -> Callable[..., Any]:
    def send(caller: str, method: str, path: str, body: Any) -> Any:
        headers, account = callers[caller]
        whole = f"/v1/controls/accounts/{account}{path.format(symbol='AAPL')}"
        return setting.client.open(whole, method=method, json=body, headers=headers)

    return send


def account_rows(call: Callable[..., Any], account: Any, expected: dict[str, tuple[int, ...]]) -> list[Row]:
    """A row per endpoint about an account. Before each try there is something to read and to delete."""
    reading = {caller: statuses[0] for caller, statuses in expected.items()}
    writing = {caller: statuses[1] for caller, statuses in expected.items()}
    deleting = {caller: 204 if statuses[-1] == 200 else statuses[-1] for caller, statuses in expected.items()}

    def row(method: str, path: str, body: Any, statuses: dict[str, int]) -> Row:
        whole = f"/v1/controls/accounts/{{account_id}}{path}"
        needed = [write for write in WRITE if write[1] == path] or WRITE

        def request() -> dict[str, Any]:
            for write in needed:
                call("admin", *write)
            return {"path": whole.format(account_id=account, symbol="AAPL"), "json": body}

        return Row(method, whole, statuses, request)

    kinds = ((READ, reading), (WRITE, writing), (DELETE, deleting))
    return [row(*endpoint, statuses) for endpoints, statuses in kinds for endpoint in endpoints]


@pytest.fixture(scope="module")
def headers(callers: Any) -> Callable[[str], dict[str, str]]:
    return lambda caller: dict(callers[caller][0])


@pytest.mark.parametrize(
    ("caller", "expected"),
    [("admin", EXPECTED), ("admin of the same organization without premium", WITHOUT_PREMIUM)],
    ids=["with premium", "without premium"],
)
def test_every_endpoint_answers_every_caller_as_the_matrix_says(
    setting: Any, call: Callable[..., Any], callers: Any, headers: Any, caller: str, expected: Any
) -> None:
    rows = account_rows(call, callers[caller][1], expected)

    assert {str(row): found for row in rows if (found := differences(setting.client, headers, row))} == {}


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        ("live key", "forbidden"),
        ("member", "forbidden"),
        ("admin of the same organization without premium", "entitlement_required"),
        ("key without premium", "entitlement_required"),
        ("service account", "forbidden"),
    ],
)
def test_a_refusal_says_what_is_missing(call: Callable[..., Any], caller: str, code: str) -> None:
    answer = call(caller, "PUT", "/symbols/AAPL", {"manually_disabled": True})

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


def test_the_account_is_checked_before_the_body_and_the_body_before_the_plan(setting: Any, organization: Any) -> None:
    """Whether a change needs the plan depends on what it is."""
    poor = setting.identity.organization()
    stranger = setting.controls(poor, setting.account(organization))
    owner = setting.controls(poor, setting.account(poor))
    nonsense = {"manually_disabled": "yes"}

    assert stranger.symbol("PUT", "A B", body=nonsense).status_code == 404
    assert owner.symbol("PUT", "A", body=nonsense).status_code == 422
    assert owner.symbol("PUT", "A", body={"manually_disabled": False}).status_code == 403
    assert setting.controls(organization, owner.account_id).symbol("PUT", "A", body=nonsense).status_code == 404


def test_a_live_account_is_for_live_keys(setting: Any, organization: Any) -> None:
    account = setting.account(organization, "live")

    def put(environment: str) -> int:
        headers = {"x-api-key": organization.api_keys[environment]}
        path = f"/v1/controls/accounts/{account}/symbols/AAPL"
        return int(setting.client.put(path, json={"manually_disabled": True}, headers=headers).status_code)

    assert (put("paper"), put("live")) == (403, 201)


ORGANIZATION: dict[str, tuple[int, ...]] = {
    "nobody": (401, 401),
    "admin": (200, 200),
    "member": (200, 403),
    "read_only": (200, 403),
    "user without organization": (403, 403),
    "admin of the same organization without premium": (403, 403, 404),
    "paper key": (200, 403),
    "live key": (200, 403),
    "paper key for intents only": (403, 403),
    "service account": (200, 403),
    "service account that reads": (200, 403),
    "service account that writes": (403, 403),
    "service account without organization": (403, 403),
}


def organization_rows(setting: Any, headers: Callable[[str], dict[str, str]]) -> list[Row]:
    body = {"trading_state": "ACTIVE"}

    def row(method: str, place: int, success: int, path: str = ORGANIZATION_PATH) -> Row:
        def request() -> dict[str, Any]:
            setting.client.put(ORGANIZATION_PATH, json=body, headers=headers("admin"))
            return {"path": path, "json": body if method == "PUT" else None}

        statuses = {caller: expected[place] for caller, expected in ORGANIZATION.items()}
        succeeding = {caller: success if status == 200 else status for caller, status in statuses.items()}
        return Row(method, path, succeeding, request)

    history = row("GET", 0, 200, f"{ORGANIZATION_PATH}/history")
    return [history, row("GET", 0, 200), row("PUT", 1, 200), row("DELETE", -1, 204)]


def test_the_organizations_switch_is_written_by_admins_alone(
    setting: Any, headers: Callable[[str], dict[str, str]]
) -> None:
    rows = organization_rows(setting, headers)

    assert {str(row): found for row in rows if (found := differences(setting.client, headers, row))} == {}


def test_the_matrix_has_every_endpoint(setting: Any, call: Any, headers: Any) -> None:
    rows = account_rows(call, None, EXPECTED) + organization_rows(setting, headers)

    assert uncovered(setting.client.application, rows) == set()


def test_the_document_of_the_api_has_every_endpoint(setting: Any) -> None:
    document = setting.client.get("/openapi.json").json
    operations = {(path, method) for path, item in document["paths"].items() for method in item}

    account = "/v1/controls/accounts/{account_id}"
    symbol = f"{account}/symbols/{{symbol}}"
    for path in (account, f"{account}/limits", symbol, f"{symbol}/limits", "/v1/controls/organization"):
        assert {(path, "get"), (path, "put"), (path, "delete")} <= operations
    assert {(f"{symbol}/time", method) for method in ("get", "patch", "delete")} <= operations
    assert {(f"{account}/symbols", "get"), (f"{account}/preview", "post")} <= operations
