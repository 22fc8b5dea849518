"""POST /oauth/token, and what is published about our tokens."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from jose import jwt
from werkzeug.test import TestResponse

from identity.app import create_app
from tip_local.identity_seed import ServiceAccount
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

PATH = "/oauth/token"
Bearer = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", TOKEN_RATE_LIMIT_PER_MINUTE="100000")).test_client()


@pytest.fixture(scope="module")
def account(identity: IdentityFixtures) -> ServiceAccount:
    return identity.service_account(["intent:read", "account:read"])


def basic(client_id: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()}


def grant(client: FlaskClient, account: ServiceAccount, **form: str) -> TestResponse:
    proof = {"client_id": account.client_id, "client_secret": account.client_secret}
    return client.post(PATH, data={"grant_type": "client_credentials"} | proof | form)


def test_a_client_gets_a_token_that_works_by_basic_or_in_the_body(
    client: FlaskClient, account: ServiceAccount, as_bearer: Bearer
) -> None:
    in_body = grant(client, account)
    by_basic = client.post(
        PATH, data={"grant_type": "client_credentials"}, headers=basic(account.client_id, account.client_secret)
    )

    for answer in (in_body, by_basic):
        assert answer.status_code == 200
        assert set(answer.json) == {"access_token", "token_type", "expires_in", "scope"}
        assert (answer.json["token_type"], answer.json["expires_in"]) == ("Bearer", 3600)
        assert answer.headers["Cache-Control"] == "no-store"
        shown = client.get("/v1/auth/self", headers=as_bearer(answer.json["access_token"]))
        assert (shown.json["id"], shown.json["scopes"]) == (account.client_id, ["account:read", "intent:read"])


def test_a_token_may_be_requested_with_fewer_scopes(
    client: FlaskClient, account: ServiceAccount, as_bearer: Bearer
) -> None:
    answer = grant(client, account, scope="intent:read")

    assert answer.json["scope"] == "intent:read"
    shown = client.get("/v1/auth/self", headers=as_bearer(answer.json["access_token"]))
    assert shown.json["scopes"] == ["intent:read"]


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": ""}, 400, "invalid_request"),  # sent without a value is not sent
        ({"grant_type": "CLIENT_CREDENTIALS"}, 400, "unsupported_grant_type"),
        ({"scope": "organization:write"}, 400, "invalid_scope"),
        ({"scope": "intent:read unknown"}, 400, "invalid_scope"),
        ({"scope": "   "}, 400, "invalid_scope"),
        ({"scope": "intent:read\x00"}, 400, "invalid_request"),
        ({"scope": "s" * 5_000}, 400, "invalid_request"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_secret": ""}, 401, "invalid_client"),
        ({"client_id": "sa_unknown"}, 401, "invalid_client"),
        ({"client_id": "s\x00a"}, 400, "invalid_request"),
        ({"client_id": "sä"}, 400, "invalid_request"),
    ],
)
def test_what_is_refused_is_refused_with_the_words_of_rfc_6749(
    client: FlaskClient, account: ServiceAccount, form: dict[str, str], status: int, error: str
) -> None:
    answer = grant(client, account, **form)

    assert (answer.status_code, answer.json["error"]) == (status, error)
    assert set(answer.json) == {"error", "error_description"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


def test_the_form_must_be_a_form_and_prove_the_client_once(client: FlaskClient, account: ServiceAccount) -> None:
    form = {"grant_type": "client_credentials"}
    good = basic(account.client_id, account.client_secret)
    proof = {"client_id": account.client_id, "client_secret": account.client_secret}
    tries = [
        (client.post(PATH, json=form | proof), 400, "invalid_request"),
        (client.post(PATH, data=form), 401, "invalid_client"),
        (client.post(PATH, data=proof), 400, "invalid_request"),
        (client.post(PATH, data={"scope": "intent:read"}, headers=good), 400, "invalid_request"),
        (client.post(PATH, data=form | proof, headers=good), 400, "invalid_request"),
        (client.post(PATH, data=form | {"client_id": "sa_other"}, headers=good), 400, "invalid_request"),
        (client.post(PATH, data=form, headers={"Authorization": "Basic %%%"}), 401, "invalid_client"),
        (client.post(PATH, data=form, headers={"Authorization": "Bearer x"}), 401, "invalid_client"),
        (client.post(PATH, data=form, headers={"Authorization": "Basic \xff"}), 401, "invalid_client"),
        (client.post(PATH, data=form, headers=basic(account.client_id, "")), 401, "invalid_client"),
        (client.post(PATH, data={"grant_type": ["client_credentials"] * 2}, headers=good), 400, "invalid_request"),
    ]

    assert [(answer.status_code, answer.json["error"]) for answer, *_ in tries] == [(s, e) for _, s, e in tries]
    assert client.get(PATH).status_code == 405
    assert client.post(PATH, data=form | {"padding": "x" * 70_000}, headers=good).status_code == 413


def test_the_document_says_what_the_endpoint_takes_and_how_it_refuses(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    operation = document["paths"][PATH]["post"]

    def properties(content: Any) -> set[str]:
        [schema] = [media["schema"]["$ref"].rpartition("/")[2] for media in content.values()]
        return set(document["components"]["schemas"][schema]["properties"])

    accepted = operation["requestBody"]["content"]
    assert list(accepted) == ["application/x-www-form-urlencoded"]
    of_people = {"code", "code_verifier", "redirect_uri", "refresh_token", "device_code"}
    assert properties(accepted) == {"grant_type", "scope", "client_id", "client_secret"} | of_people
    for status in ("400", "401"):
        assert list(operation["responses"][status]["content"]) == ["application/json"]
        assert properties(operation["responses"][status]["content"]) == {"error", "error_description"}
    assert list(operation["responses"]["429"]["content"]) == ["application/problem+json"]


def test_a_disabled_account_gets_no_token_and_its_tokens_stop_working(
    client: FlaskClient, identity: IdentityFixtures, operator: dict[str, str], as_bearer: Bearer
) -> None:
    account = identity.service_account(["intent:read"])

    client.patch(f"/v1/service-accounts/{account.client_id}", json={"disabled": True}, headers=operator)

    assert grant(client, account).json["error"] == "invalid_client"
    assert client.get("/v1/auth/self", headers=as_bearer(account.token)).status_code == 401


@pytest.mark.usefixtures("patient_redis")
def test_guessing_secrets_is_limited_per_client_and_per_address(platform: Platform, identity: IdentityFixtures) -> None:
    client = create_app(platform.web_environment("identity", TOKEN_RATE_LIMIT_PER_MINUTE="5")).test_client()
    account = identity.service_account(["intent:read"])

    def guess(address: str, client_id: str) -> int:
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "guess"}
        return client.post(PATH, data=form, environ_base={"REMOTE_ADDR": address}).status_code

    by_client = [guess(f"127.7.7.{number}", account.client_id) for number in range(8)]
    by_address = [guess("127.8.8.8", f"sa_{number}") for number in range(8)]

    assert by_client == [401] * 5 + [429] * 3
    assert by_address == [401] * 5 + [429] * 3


def test_the_published_keys_verify_our_tokens_and_hold_nothing_private(
    client: FlaskClient, account: ServiceAccount
) -> None:
    described = client.get("/.well-known/openid-configuration").json
    keys = client.get("/.well-known/jwks.json").json["keys"]
    token = grant(client, account).json["access_token"]

    kid = jwt.get_unverified_header(token)["kid"]
    [key] = [key for key in keys if key["kid"] == kid]
    claims = jwt.decode(token, key, algorithms=["RS256"], audience="tip", issuer=described["issuer"])
    assert claims["sub"] == account.client_id
    assert all(set(key) == {"alg", "kty", "n", "e", "kid", "use"} for key in keys)
    assert described["jwks_uri"] == "https://identity.tip.local/.well-known/jwks.json"
    assert described["token_endpoint"] == "https://identity.tip.local/oauth/token"
