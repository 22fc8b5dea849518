"""Who may subscribe: the same callers as read intents, over both transports."""

import asyncio
from collections.abc import Iterator
from uuid import UUID, uuid4

import grpc
import pytest
import requests

from identity.model import Bounds
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway, gateways
from .subscribers import Metadata, bearer, connected, key, outcome, run, subscribe

Code = grpc.StatusCode
HTTP = {
    "streaming": 200,
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
}


@pytest.fixture(scope="module")
def narrow_gateway(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One with low limits and reflection."""
    limits = {"STREAMS_PER_PRINCIPAL": "2", "STREAMS_PER_PROCESS": "3", "RATE_LIMIT_PER_MINUTE": "10"}
    with gateways(platform, tmp_path_factory.mktemp("narrow")) as start:
        yield start(**limits, TRUSTED_PROXIES="1", REFLECTION="true")


@pytest.fixture(scope="module")
def other(identity: IdentityFixtures) -> Organization:
    return identity.organization()


def http_status(gateway: Gateway, metadata: Metadata, account_id: object) -> int:
    address = f"{gateway.events_url}/v1/accounts/{account_id}/events"
    with requests.get(address, headers=dict(metadata), stream=True, timeout=60) as answer:
        assert answer.status_code == 200 or answer.json()["status"] == answer.status_code
        return answer.status_code


def cases(
    identity: IdentityFixtures, acme: Organization, other: Organization, account_id: UUID
) -> dict[str, tuple[Metadata, object]]:
    def bounded(*accounts: UUID) -> str:
        return identity.key(acme.id, "paper", bounds=Bounds(accounts=accounts))

    reader = identity.service_account(["intent:read"])
    stranger = identity.service_account(["account:read"])
    return {
        "paper key": (key(acme.api_keys["paper"]), "streaming"),
        "read-only key": (key(acme.api_keys["paper_read_only"]), "streaming"),
        "key without intent:read": (key(identity.key(acme.id, "paper", ["control:read"])), Code.PERMISSION_DENIED),
        "live key on a paper account": (key(acme.api_keys["live"]), "streaming"),
        "key of another organization": (key(other.api_keys["paper"]), Code.NOT_FOUND),
        "key bounded to this account": (key(bounded(account_id, uuid4())), "streaming"),
        "key bounded to another account": (key(bounded(uuid4())), Code.NOT_FOUND),
        "user admin": (bearer(acme.tokens["admin"]), "streaming"),
        "user member": (bearer(acme.tokens["member"]), "streaming"),
        "user read_only": (bearer(acme.tokens["read_only"]), "streaming"),
        "user of another organization": (bearer(other.tokens["admin"]), Code.NOT_FOUND),
        "user naming another organization": (bearer(other.tokens["admin"], acme.id), Code.NOT_FOUND),
        "user without organization": (bearer(identity.user_without_organization()), Code.PERMISSION_DENIED),
        "service account": (bearer(reader.token, acme.id), "streaming"),
        "service account for another organization": (bearer(reader.token, other.id), Code.NOT_FOUND),
        "service account without organization": (bearer(reader.token), Code.PERMISSION_DENIED),
        "service account without scope": (bearer(stranger.token, acme.id), Code.PERMISSION_DENIED),
        "service account, organization no uuid": (bearer(reader.token, "acme"), Code.PERMISSION_DENIED),
        "nobody": ((), Code.UNAUTHENTICATED),
        "both": ((*key(acme.api_keys["paper"]), *bearer(acme.tokens["admin"])), Code.INVALID_ARGUMENT),
        "invented key": (key("tip_paper_" + "a" * 36), Code.UNAUTHENTICATED),
        "no key at all": (key("hello"), Code.UNAUTHENTICATED),
        "key as bearer": (bearer(acme.api_keys["paper"]), Code.UNAUTHENTICATED),
        "basic": ((("authorization", "Basic YTpi"),), Code.UNAUTHENTICATED),
        "broken token": (bearer(acme.tokens["admin"][:-4] + "AAAA"), Code.UNAUTHENTICATED),
    }


def test_every_kind_of_caller_gets_the_same_answer_on_both_transports(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, other: Organization, account_id: UUID
) -> None:
    expected = cases(identity, acme, other, account_id)

    found = {
        name: (run(outcome(gateway, metadata, account_id)), http_status(gateway, metadata, account_id))
        for name, (metadata, _) in expected.items()
    }

    assert found == {name: (answer, HTTP[answer]) for name, (_, answer) in expected.items()}


def test_two_keys_are_one_too_many(gateway: Gateway, acme: Organization, account_id: UUID) -> None:
    metadata = (*key(acme.api_keys["paper"]), *key(acme.api_keys["paper"]))

    assert run(outcome(gateway, metadata, account_id)) == Code.INVALID_ARGUMENT


def test_an_account_that_does_not_exist_looks_like_anothers(
    gateway: Gateway, platform: Platform, acme: Organization, other: Organization
) -> None:
    with platform.admin() as admin:
        foreign = add_account(admin, other.id)

    async def details(account_id: object) -> tuple[Code, str]:
        async with connected(gateway.target) as channel:
            call = await subscribe(channel, key(acme.api_keys["paper"]), account_id, established=False)
            return await call.ending()

    assert run(details(foreign)) == run(details(uuid4()))
    assert run(details(foreign))[0] == Code.NOT_FOUND
    assert run(details("not-an-id"))[0] == Code.INVALID_ARGUMENT


def test_keys_of_both_environments_read_any_account(gateway: Gateway, platform: Platform, acme: Organization) -> None:
    with platform.admin() as admin:
        live = add_account(admin, acme.id, "live")

    for environment in ("live", "paper"):
        assert run(outcome(gateway, key(acme.api_keys[environment]), live)) == "streaming"


def test_streams_are_limited_by_caller_and_by_process(
    narrow_gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    gateway = narrow_gateway

    async def scenario() -> list[object]:
        async with connected(gateway.target) as channel:
            mine, theirs = key(acme.api_keys["paper"]), bearer(acme.tokens["member"])
            opened = [await subscribe(channel, mine, account_id) for _ in range(2)]
            answers = [await outcome(gateway, mine, account_id)]
            opened.append(await subscribe(channel, theirs, account_id))
            answers.append(await outcome(gateway, bearer(acme.tokens["admin"]), account_id))
            opened[0].call.cancel()
            while gateway.metric("tip_stream_subscribers") > 2:
                await asyncio.sleep(0.05)
            answers.append(await outcome(gateway, mine, account_id))
            return answers

    assert run(scenario()) == [Code.RESOURCE_EXHAUSTED, Code.RESOURCE_EXHAUSTED, "streaming"]


def test_refused_callers_are_limited_by_address(narrow_gateway: Gateway, account_id: UUID) -> None:
    from_somewhere = (*key("tip_paper_" + "b" * 36), ("x-forwarded-for", "203.0.113.77"))

    answers = [run(outcome(narrow_gateway, from_somewhere, account_id)) for _ in range(12)]

    assert answers[0] == Code.UNAUTHENTICATED and answers[-1] == Code.RESOURCE_EXHAUSTED


def test_the_schema_is_only_served_when_configured(gateway: Gateway, narrow_gateway: Gateway) -> None:
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    def services(target: str) -> list[str]:
        with grpc.insecure_channel(target) as channel:
            return list(ProtoReflectionDescriptorDatabase(channel).get_services())

    with pytest.raises(grpc.RpcError) as refused:
        services(gateway.target)
    assert refused.value.code() == Code.UNIMPLEMENTED
    assert "trading.TradingService" in services(narrow_gateway.target)


def test_health_is_answered_without_a_credential(gateway: Gateway) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(gateway.target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answers = {
            name: stub.Check(health_pb2.HealthCheckRequest(service=name)).status
            for name in ("", "trading.TradingService")
        }

    assert set(answers.values()) == {health_pb2.HealthCheckResponse.SERVING}


def test_health_that_is_not_offered_is_unimplemented_and_not_an_exception(gateway: Gateway) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(gateway.target) as channel, pytest.raises(grpc.RpcError) as refused:
        health_pb2_grpc.HealthStub(channel).List(health_pb2.HealthListRequest())

    assert refused.value.code() == Code.UNIMPLEMENTED
    assert "Unexpected" not in refused.value.details()
