"""Bounds of API keys: what they may be, who sees them, and who may change them in which direction."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from identity import model_keys
from identity.model_keys import Bounds
from tip_testing.identity_fixtures import IdentityFixtures, Organization

Headers = dict[str, str]
KEY = {"name": "Agent", "environment": "paper", "permissions": ["intent:read", "intent:edit", "control:edit"]}
ACCOUNTS = sorted(str(uuid4()) for _ in range(3))
BOUNDS = {"accounts": ACCOUNTS[:2], "symbols": ["AAPL", "MSFT"], "max_notional_per_day": "1000.5"}


def make(client: FlaskClient, headers: Headers, bounds: Any = BOUNDS) -> Any:
    return client.post("/v1/api-keys", json={**KEY, "bounds": bounds}, headers=headers)


def test_bounds_are_shown_wherever_the_key_is(client: FlaskClient, admin: Headers) -> None:
    given_bounds = {"accounts": [ACCOUNTS[1], ACCOUNTS[0], ACCOUNTS[1]], "symbols": [" msft", "AAPL"]}
    made = make(client, admin, BOUNDS | given_bounds)
    key = made.json["key"]

    shown = client.get(made.headers["Location"], headers=admin).json
    validated = client.post("/api/v1/auth/api-key/validate", json={"api_key": key}).json
    self = client.get("/v1/auth/self", headers={"x-api-key": key}).json
    assert made.json["bounds"] == shown["bounds"] == validated["bounds"] == self["bounds"] == BOUNDS


def test_a_key_without_bounds_has_none(client: FlaskClient, admin: Headers) -> None:
    for given_bounds in ({}, {"bounds": None}):
        made = client.post("/v1/api-keys", json={**KEY, **given_bounds}, headers=admin)

        assert made.json["bounds"] is None
        assert client.get("/v1/auth/self", headers={"x-api-key": made.json["key"]}).json["bounds"] is None


@pytest.mark.parametrize(
    ("bounds", "pointer"),
    [
        ({}, "/bounds"),
        ({"accounts": None, "symbols": None}, "/bounds"),
        ({"accounts": []}, "/bounds/accounts"),
        ({"accounts": ["all"]}, "/bounds/accounts/0"),
        ({"accounts": [str(uuid4()) for _ in range(101)]}, "/bounds/accounts"),
        ({"symbols": []}, "/bounds/symbols"),
        ({"symbols": ["A B"]}, "/bounds/symbols/0"),
        ({"max_notional_per_day": "0"}, "/bounds/max_notional_per_day"),
        ({"max_notional_per_day": 1000}, "/bounds/max_notional_per_day"),
        ({"everything": True}, "/bounds/everything"),
        (["AAPL"], "/bounds"),
    ],
)
def test_bounds_that_say_nothing_or_nonsense_are_refused(
    client: FlaskClient, admin: Headers, bounds: Any, pointer: str
) -> None:
    refused = make(client, admin, bounds)

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, pointer)


def test_a_change_of_bounds_is_in_the_audit_log(
    client: FlaskClient, admin: Headers, organization: Organization
) -> None:
    made = make(client, admin)

    client.patch(made.headers["Location"], json={"bounds": {"symbols": ["AAPL"]}}, headers=admin)
    client.patch(made.headers["Location"], json={"bounds": None}, headers=admin)

    path = f"/v1/organizations/{organization.id}/audit-entries?target={made.json['id']}"
    removed, narrowed, created = client.get(path, headers=admin).json["data"]
    assert created["to"]["bounds"] == BOUNDS
    assert (narrowed["from"], narrowed["to"]) == ({"bounds": BOUNDS}, {"bounds": {"symbols": ["AAPL"]}})
    assert (removed["from"], removed["to"]) == ({"bounds": {"symbols": ["AAPL"]}}, {"bounds": None})


@pytest.mark.parametrize(
    ("bounds", "status"),
    [
        ({"accounts": ACCOUNTS[:1], "symbols": ["AAPL"], "max_notional_per_day": "1000"}, 200),
        (BOUNDS, 200),
        ({**BOUNDS, "max_notional_per_day": "1000.51"}, 403),
        ({**BOUNDS, "max_notional_per_day": None}, 403),
        ({**BOUNDS, "accounts": ACCOUNTS}, 403),
        ({**BOUNDS, "accounts": None}, 403),
        ({**BOUNDS, "symbols": None}, 403),
        (None, 403),
    ],
)
def test_whoever_could_not_make_the_key_can_narrow_it_and_not_widen_it(
    client: FlaskClient,
    admin: Headers,
    identity: IdentityFixtures,
    organization: Organization,
    as_bearer: Callable[[str], Headers],
    bounds: Any,
    status: int,
) -> None:
    made = make(client, admin)
    service = identity.service_account(["api-key:write"])  # without control:write, which the key holds
    narrow = as_bearer(service.token) | {"x-organization-id": str(organization.id)}

    changed = client.patch(made.headers["Location"], json={"bounds": bounds}, headers=narrow)

    assert changed.status_code == status
    if status == 403:
        assert changed.json["code"] == "grant_too_wide"
        assert client.get(made.headers["Location"], headers=admin).json["bounds"] == BOUNDS


def test_a_key_makes_and_changes_no_key_not_even_itself(client: FlaskClient, admin: Headers) -> None:
    made = make(client, admin)
    itself = {"x-api-key": made.json["key"]}

    assert make(client, itself).status_code == 403
    assert client.patch(made.headers["Location"], json={"bounds": None}, headers=itself).status_code == 403
    assert client.get(made.headers["Location"], headers=admin).json["bounds"] == BOUNDS


SYMBOLS = st.none() | st.sets(st.sampled_from("ABC"), min_size=1)


@given(before=SYMBOLS, after=SYMBOLS, traded=st.sampled_from("ABC"))
def test_only_wider_bounds_let_anything_pass_that_they_did_not_before(
    before: set[str] | None, after: set[str] | None, traded: str
) -> None:
    def passes(symbols: set[str] | None) -> bool:
        return symbols is None or traded in symbols

    then, now = (Bounds(symbols=None if given is None else tuple(given)) for given in (before, after))

    if passes(after) and not passes(before):
        assert model_keys.is_wider(then, now)
    assert not model_keys.is_wider(then, then)
