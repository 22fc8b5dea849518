"""A ticket opens one stream in a browser, once, for whoever could open it with a credential."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
import redis
import requests

from chassis import keys
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway, StartGateway
from .log_writer import Writer
from .sse_client import events
from .test_callers import HTTP, cases


@pytest.fixture(scope="module")
def other(identity: IdentityFixtures) -> Organization:
    return identity.organization()


def address(gateway: Gateway, account_id: object) -> str:
    return f"{gateway.events_url}/v1/accounts/{account_id}/events"


def requested(gateway: Gateway, account_id: object, headers: dict[str, str]) -> requests.Response:
    return requests.post(f"{address(gateway, account_id)}/ticket", headers=headers, timeout=60)


def issued(gateway: Gateway, account_id: object, api_key: str) -> str:
    answer = requested(gateway, account_id, {"x-api-key": api_key})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    ticket: str = answer.json()["ticket"]
    return ticket


@contextmanager
def opened(gateway: Gateway, account_id: object, ticket: str, **headers: str) -> Iterator[requests.Response]:
    query = {"ticket": ticket, "resume_after_sequence": "0"}
    with requests.get(address(gateway, account_id), query, headers=headers, stream=True, timeout=60) as answer:
        yield answer


def status(gateway: Gateway, account_id: object, ticket: str) -> int:
    with opened(gateway, account_id, ticket) as answer:
        return answer.status_code


def test_it_opens_the_stream_once(gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer) -> None:
    writer.append(account_id, 2)
    ticket = issued(gateway, account_id, acme.api_keys["paper"])

    with opened(gateway, account_id, ticket) as answer:
        assert answer.status_code == 200
        assert next(events(answer))["id"].startswith("1@")
        assert status(gateway, account_id, ticket) == 401


def test_it_opens_no_other_account_and_is_spent_by_the_attempt(
    platform: Platform, gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    with platform.admin() as connection:
        another = add_account(connection, acme.id)
    ticket = issued(gateway, account_id, acme.api_keys["paper"])

    assert status(gateway, another, ticket) == 401
    assert status(gateway, account_id, ticket) == 401


def test_whoever_may_open_the_stream_gets_one_and_nobody_else(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, other: Organization, account_id: UUID
) -> None:
    for name, (metadata, expected) in cases(identity, acme, other, account_id).items():
        answer = requested(gateway, account_id, dict(metadata))
        assert answer.status_code == {**HTTP, "streaming": 201}[expected], name
        if answer.status_code == 201:
            assert status(gateway, account_id, answer.json()["ticket"]) == 200, name


def test_its_stream_ends_with_the_credential_that_requested_it(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    key = identity.key(acme.id, "paper", ["intent:read"])
    with opened(gateway, account_id, issued(gateway, account_id, key)) as answer:
        assert answer.status_code == 200
        writer.execute("UPDATE identity.api_key SET disabled = true WHERE prefix = :prefix", prefix=keys.prefix(key))
        ends = [event for event in events(answer) if event["event"] == "end"]
    assert len(ends) == 1


@pytest.mark.parametrize("ticket", ["", "x", "x" * 5_000, "ü", "a b"])
def test_an_invented_one_is_no_credential(gateway: Gateway, account_id: UUID, ticket: str) -> None:
    assert status(gateway, account_id, ticket) == 401


def test_with_a_credential_beside_it_it_is_refused(gateway: Gateway, acme: Organization, account_id: UUID) -> None:
    ticket = issued(gateway, account_id, acme.api_keys["paper"])

    with opened(gateway, account_id, ticket, **{"x-api-key": acme.api_keys["paper"]}) as answer:
        assert (answer.status_code, answer.json()["code"]) == (400, "two_credentials")


def test_redis_has_it_for_half_a_minute_and_shows_no_credential(
    gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    ticket = issued(gateway, account_id, acme.api_keys["paper"])

    with redis.Redis.from_url(gateway.environment["REDIS_URL"]) as connection:
        names: Any = connection.keys("tip:ticket:*")
        kept = {name: connection.get(name) for name in names}
        left = [connection.ttl(name) for name in names]
    assert kept and all(0 < seconds <= 30 for seconds in left)
    for secret in (ticket.encode(), acme.api_keys["paper"].encode()):
        assert not any(secret in name + value for name, value in kept.items())


def test_without_redis_there_are_none_and_credentials_still_work(
    start_gateway: StartGateway, acme: Organization, account_id: UUID
) -> None:
    gateway = start_gateway(REDIS_URL="redis://127.0.0.1:1/0")
    headers = {"x-api-key": acme.api_keys["paper"]}

    assert requested(gateway, account_id, headers).status_code == 503
    assert status(gateway, account_id, "x") == 503
    with requests.get(address(gateway, account_id), headers=headers, stream=True, timeout=60) as answer:
        assert answer.status_code == 200
