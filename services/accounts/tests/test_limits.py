"""How many accounts and credentials there may be: generous, configurable, and never one too many."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from flask.testing import FlaskClient

from accounts.app import create_app
from tip_testing.accounts_caller import SECRET, Caller, bearer
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

ACCOUNT = {"name": "Main", "broker": "paper", "environment": "paper"}
CREDENTIAL = {"label": "Trading", "secret": SECRET}
MOST = 3


@pytest.fixture(scope="module")
def limited(platform: Platform) -> FlaskClient:
    limits = {"ACCOUNTS_PER_ORGANIZATION": str(MOST), "CREDENTIALS_PER_ACCOUNT": str(MOST)}
    return create_app(platform.web_environment("accounts", **limits)).test_client()


@pytest.fixture
def caller(limited: FlaskClient, organization: Organization) -> Caller:
    return Caller(limited, bearer(organization.tokens["admin"]))


def test_an_account_too_many_is_refused_until_another_is_deleted(caller: Caller) -> None:
    made = [caller.post("/v1/accounts", ACCOUNT) for _ in range(MOST + 1)]

    assert [answer.status_code for answer in made] == [201] * MOST + [409]
    assert made[-1].json["code"] == "limit_reached"
    caller.call("DELETE", f"/v1/accounts/{made[0].json['id']}")
    assert caller.post("/v1/accounts", ACCOUNT).status_code == 201


def test_accounts_made_at_the_same_time_never_exceed_the_limit(caller: Caller) -> None:
    def make(_: int) -> int:
        client = caller.client.application.test_client()
        return Caller(client, caller.headers).post("/v1/accounts", ACCOUNT).status_code

    with ThreadPoolExecutor(6) as callers:
        statuses = list(callers.map(make, range(6)))

    assert len(caller.get("/v1/accounts").json["data"]) == MOST
    assert statuses.count(201) == MOST and set(statuses) <= {201, 409, 503}  # 503: a lock waited for too long


def test_another_organization_has_its_own_limit(caller: Caller, identity: IdentityFixtures) -> None:
    for _ in range(MOST):
        caller.account()

    other = Caller(caller.client, bearer(identity.organization().tokens["admin"]))
    assert other.post("/v1/accounts", ACCOUNT).status_code == 201


def test_a_credential_too_many_is_refused_and_its_secret_kept_nowhere(caller: Caller) -> None:
    path = f"/v1/accounts/{caller.account()['id']}/credentials"
    made = [caller.post(path, CREDENTIAL) for _ in range(MOST + 1)]

    assert [answer.status_code for answer in made] == [201] * MOST + [409]
    assert made[-1].json["code"] == "limit_reached"
    assert len(caller.get(path).json["data"]) == MOST
