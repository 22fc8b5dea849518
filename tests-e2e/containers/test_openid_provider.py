"""Users from an OpenID Connect provider that nobody here wrote. In such a run all the other journeys have them, too."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import requests
from glewlwyd_admin import Glewlwyd

pytestmark = pytest.mark.skipif(
    "glewlwyd" not in os.environ.get("TIP_COMPOSE_FILES", ""),
    reason="the users are identity's own in this run; TIP_COMPOSE_FILES brings the provider",
)

REPLICAS_ASKED = 20
"""Requests in a row that have to agree: every replica keeps the provider's keys for itself, and chance chooses it."""


@pytest.fixture(scope="module")
def provider(containers: Any) -> Glewlwyd:
    found = containers.provider
    assert isinstance(found, Glewlwyd)
    return found


@pytest.fixture
def person(provider: Glewlwyd) -> str:
    """Someone at acme whom the platform has never seen."""
    name = f"person-{uuid4().hex[:8]}"
    provider.add_user(name, "acme", "admin")
    return name


@pytest.fixture
def silent_provider(containers: Any) -> Iterator[Callable[[], None]]:
    """Freezes the provider, and in any case lets it go on afterwards."""
    container = containers.docker("glewlwyd")[0]
    yield container.pause
    container.reload()
    if container.status == "paused":
        container.unpause()


def everywhere(stack: Any, token: str, path: str) -> set[int]:
    return {stack.bearer(token)("GET", path).status_code for _ in range(REPLICAS_ASKED)}


def until_everywhere(stack: Any, token: str, status: int, path: str = "/v1/users/me", seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while (found := everywhere(stack, token, path)) != {status}:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def test_whoever_logs_in_there_trades_here(stack: Any, provider: Glewlwyd, person: str) -> None:
    caller = stack.bearer(provider.login(person))
    account, symbol = stack.account("acme"), f"G{uuid4().hex[:8].upper()}"

    me = caller("GET", "/v1/users/me").json()
    assert (me["organization_id"], me["role"]) == (stack.organization("acme")["id"], "admin")
    control = caller("PUT", f"/v1/controls/accounts/{account}/symbols/{symbol}", {"manually_disabled": True})
    assert control.status_code == 201
    assert caller("GET", f"/v1/accounts/{account}").status_code == 200
    assert caller("GET", f"/v1/accounts/{account}/intents").status_code == 200
    assert caller("GET", f"/v1/accounts/{stack.account('globex')}").status_code == 404


def test_a_role_there_is_what_the_configuration_says_it_is_here(stack: Any, provider: Glewlwyd) -> None:
    name = f"auditor-{uuid4().hex[:8]}"
    provider.add_user(name, "acme", "read_only")
    caller = stack.bearer(provider.login(name))

    assert caller("GET", "/v1/users/me").json()["role"] == "read_only"
    assert caller("POST", "/v1/accounts", {"name": "x", "broker": "paper", "environment": "paper"}).status_code == 403


def test_a_token_for_another_audience_opens_nothing(stack: Any, provider: Glewlwyd, person: str) -> None:
    assert stack.bearer(provider.login(person, resource=None))("GET", "/v1/users/me").status_code == 401


def test_our_own_tokens_of_users_open_nothing_and_those_of_service_accounts_do(stack: Any) -> None:
    issue = "import json; print(json.load(open('/var/lib/tip/local.json'))['organizations']['acme']['tokens']['admin'])"
    ours = stack.operate("python", "-c", issue).strip()

    assert stack.bearer(ours)("GET", "/v1/users/me").status_code == 401
    assert stack.service()("GET", "/v1/organizations").status_code == 200


def test_whoever_deletes_themself_is_deleted_there_and_does_not_come_back(
    stack: Any, provider: Glewlwyd, person: str
) -> None:
    token = provider.login(person)
    assert stack.bearer(token)("GET", "/v1/users/me").status_code == 200

    assert stack.bearer(token)("DELETE", "/v1/users/me").status_code == 204

    assert not provider.has_user(person)
    with pytest.raises(AssertionError, match="/api/auth/: 401"):
        provider.login(person)
    for path in ("/v1/users/me", "/v1/accounts", f"/v1/accounts/{stack.account('acme')}/intents"):
        assert everywhere(stack, token, path) == {401}
    gone = stack.bearer(token)("DELETE", "/v1/users/me")
    assert (gone.status_code, gone.text) == (401, "unauthorized")
    # Someone made there under the same name is still the one who was deleted.
    provider.add_user(person, "acme", "admin")
    assert stack.bearer(provider.login(person))("GET", "/v1/users/me").status_code == 401


def test_whoever_is_deleted_at_the_provider_alone_gets_no_new_token(provider: Glewlwyd, person: str) -> None:
    provider.login(person)

    provider.delete_user(person)

    with pytest.raises(AssertionError, match="/api/auth/: 401"):
        provider.login(person)


def test_keys_rotated_there_are_found_and_keys_withdrawn_there_are_forgotten(
    stack: Any, provider: Glewlwyd, person: str
) -> None:
    old, first = provider.keys, provider.login(person)
    until_everywhere(stack, first, 200)

    provider.rotate(*old)
    second = provider.login(person)
    until_everywhere(stack, second, 200)
    assert everywhere(stack, first, "/v1/users/me") == {200}

    provider.rotate(*old)  # without the second
    third = provider.login(person)
    until_everywhere(stack, third, 200)
    assert everywhere(stack, first, "/v1/users/me") == {200}
    assert everywhere(stack, second, "/v1/users/me") == {401}


def test_users_whose_keys_are_known_go_on_while_the_provider_is_silent(
    stack: Any, provider: Glewlwyd, person: str, silent_provider: Callable[[], None]
) -> None:
    token = provider.login(person)
    until_everywhere(stack, token, 200)

    silent_provider()

    assert everywhere(stack, token, "/v1/users/me") == {200}


def test_a_deletion_the_provider_did_not_answer_is_finished_when_it_is_back(
    stack: Any, provider: Glewlwyd, person: str, containers: Any, silent_provider: Callable[[], None]
) -> None:
    token = provider.login(person)
    until_everywhere(stack, token, 200)
    silent_provider()

    answer = stack.bearer(token)("DELETE", "/v1/users/me")
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "text/plain; charset=utf-8")
    containers.docker("glewlwyd")[0].unpause()

    until_everywhere(stack, token, 401)
    assert not provider.has_user(person)


def test_the_provider_is_not_reached_through_the_ingress(stack: Any) -> None:
    answer = requests.get(f"{stack.local['base_url']}/api/oidc/jwks", verify=str(stack.ca), timeout=60)

    assert answer.status_code == 404
