"""Who is revoked loses the stream in time, whatever other organizations have open."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from uuid import UUID, uuid4

import aiohttp
import grpc
import pytest
from sqlalchemy import event

from chassis import access, authentication, db, keys, problems, tokens
from chassis.authentication import PresentedCredentials
from chassis.principals import Kind, Principal
from identity.model import Bounds
from stream_gateway import callers
from stream_gateway.config import Config
from stream_gateway.gateway import Gateway as InProcess
from stream_gateway.hub import Stream
from stream_gateway.model import CredentialEnded, PermissionEnded
from stream_gateway.usecases import Request
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform
from tip_testing.waiting import eventually_async

from .gateway_process import Gateway, StartGateway, gateway_behind_proxy
from .log_writer import Writer
from .subscribers import ALL_TYPES, Metadata, bearer, connected, key, run, subscribe

Code = grpc.StatusCode
SET_BOUNDS = "UPDATE identity.api_key SET bounds = CAST(:bounds AS jsonb) WHERE prefix = :prefix"
DISABLE_KEY = "UPDATE identity.api_key SET disabled = true WHERE prefix = :prefix"


@pytest.fixture(scope="module")
def crowd(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def crowd_account(platform: Platform, crowd: Organization) -> UUID:
    with platform.admin() as admin:
        return add_account(admin, crowd.id)


def test_two_hundred_headers_on_one_token_are_one_question_and_anothers_key_ends_in_time(
    start_gateway: StartGateway,
    platform: Platform,
    identity: IdentityFixtures,
    acme: Organization,
    account_id: UUID,
    crowd: Organization,
    crowd_account: UUID,
    writer: Writer,
) -> None:
    """Counted on the way to the database. Half of the streams are gRPC, half Server-Sent Events."""
    doomed = identity.key(acme.id, "paper")

    async def scenario() -> tuple[int, int, Code, float]:
        behind = gateway_behind_proxy(platform, start_gateway, "DATABASE_URL", RECHECK_SECONDS="0.5")
        async with behind as (gateway, proxy), connected(gateway.target) as channel:
            crowd_token = crowd.tokens["member"]
            async with crowded(gateway, crowd_token, crowd_account, 100):
                subscriber = await subscribe(channel, key(doomed), account_id)
                proxy.received.clear()
                await eventually_async(lambda: proxy.received.count(b"identity_api.usable_api_key") >= 4)
                of_keys = proxy.received.count(b"identity_api.usable_api_key")
                of_users = proxy.received.count(b"identity_api.app_user")
                await asyncio.to_thread(writer.execute, DISABLE_KEY, prefix=keys.prefix(doomed))
                code, _ = await subscriber.ending()
                return of_keys, of_users, code, await asyncio.to_thread(gateway.metric, "tip_stream_subscribers")

    of_keys, of_users, code, left = run(scenario())

    assert of_users <= of_keys + 1
    assert code == Code.UNAUTHENTICATED
    assert left == 200


@pytest.mark.parametrize("bounds", [None, '{"symbols": ["AAPL"]}'])
def test_a_key_that_no_longer_sees_the_account_loses_the_stream_whatever_it_saw_in_between(
    start_gateway: StartGateway,
    platform: Platform,
    identity: IdentityFixtures,
    acme: Organization,
    account_id: UUID,
    writer: Writer,
    bounds: str | None,
) -> None:
    """The key sees another account, then also this one, then the other alone: its stream from before stays open."""
    gateway = start_gateway(RECHECK_SECONDS="0.5")
    with platform.admin() as admin:
        other = add_account(admin, acme.id)
    bounded = identity.key(acme.id, "paper", bounds=Bounds(accounts=(other,)))
    narrow = f'{{"accounts": ["{other}"]}}'

    async def scenario() -> tuple[Code, bool]:
        async with connected(gateway.target) as channel:
            kept = await subscribe(channel, key(bounded), other)
            await asyncio.to_thread(writer.execute, SET_BOUNDS, prefix=keys.prefix(bounded), bounds=bounds)
            await kept.ending()
            lost = await subscribe(channel, key(bounded), account_id)
            await asyncio.to_thread(writer.execute, SET_BOUNDS, prefix=keys.prefix(bounded), bounds=narrow)
            again = await subscribe(channel, key(bounded), other)
            code, _ = await lost.ending()
            await asyncio.sleep(1.5)
            return code, again.call.done()

    assert run(scenario()) == (Code.PERMISSION_DENIED, False)


@asynccontextmanager
async def crowded(gateway: Gateway, token: str, account_id: UUID, each: int) -> AsyncIterator[None]:
    """Streams of one token over both transports, each with another x-organization-id."""
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(connected(gateway.target))
        kept = [await subscribe(channel, bearer(token, uuid4()), account_id) for _ in range(each)]
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        address = f"{gateway.events_url}/v1/accounts/{account_id}/events"
        for _ in range(each):
            answer = await session.get(address, headers=dict(bearer(token, uuid4())))
            stack.callback(answer.close)
            assert answer.status == 200
        yield
        assert not any(subscriber.call.done() for subscriber in kept)


def test_when_only_users_cannot_be_verified_only_their_streams_end(
    start_gateway: StartGateway,
    acme: Organization,
    account_id: UUID,
    crowd: Organization,
    crowd_account: UUID,
    writer: Writer,
) -> None:
    """The table of memberships is locked for longer than a stream may go unverified."""
    gateway = start_gateway(RECHECK_SECONDS="0.3", UNVERIFIED_SECONDS="4")

    async def scenario() -> tuple[tuple[Code, str], bool, list[int]]:
        async with connected(gateway.target) as channel:
            by_key = await subscribe(channel, key(acme.api_keys["paper"]), account_id)
            by_token = await subscribe(channel, bearer(crowd.tokens["member"]), crowd_account)
            with writer.locked("identity.membership"):
                ended = await by_token.ending(seconds=60)
                still_open = not by_key.call.done()
                await asyncio.to_thread(writer.append, account_id)
                await by_key.received(1)
            return ended, still_open, by_key.sequences

    (code, details), still_open, sequences = run(scenario())

    assert code == Code.UNAVAILABLE and "cannot be verified" in details
    assert still_open and sequences == [1]


@pytest.fixture
def configuration(platform: Platform) -> Config:
    settings = {"RECHECK_SECONDS": "0.001", "STREAMS_PER_PRINCIPAL": "5000"}
    return Config.from_env(platform.environment("stream_gateway", **settings))


async def opened(gateway: InProcess, metadata: Metadata, account_id: UUID) -> Stream:
    """A stream to which nothing is delivered."""
    shown = dict(metadata)
    credentials = [("key", shown["x-api-key"])] if "x-api-key" in shown else [("bearer", shown["authorization"])]
    presented = PresentedCredentials(tuple(credentials), shown.get("x-organization-id"), "127.0.0.1")

    async def read() -> Request:
        return Request(account_id, frozenset(ALL_TYPES))

    return await gateway.subscribe(presented, read, "grpc")


def test_a_thousand_streams_are_verified_again_by_one_read_of_each_kind_and_no_signature(
    configuration: Config,
    identity: IdentityFixtures,
    acme: Organization,
    account_id: UUID,
    crowd: Organization,
    crowd_account: UUID,
    writer: Writer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = identity.service_account(["intent:read"])
    doomed = identity.key(acme.id, "paper")
    signatures, statements = [], []
    decode = tokens.jwt.decode
    monkeypatch.setattr(tokens.jwt, "decode", lambda *args, **more: signatures.append(1) or decode(*args, **more))

    async def scenario() -> tuple[list[Stream], Stream, int]:
        gateway = InProcess(configuration)
        crowd_metadata = [
            *(bearer(token, uuid4()) for token in crowd.tokens.values() for _ in range(300)),
            *(bearer(reader.token, crowd.id) for _ in range(100)),
            *(key(api_key) for name, api_key in crowd.api_keys.items() if name != "live" for _ in range(10)),
        ]
        of_crowd = [await opened(gateway, metadata, crowd_account) for metadata in crowd_metadata]
        of_acme = await opened(gateway, key(doomed), account_id)
        opened_with = len(signatures)
        event.listen(gateway.deps.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
        writer.execute(DISABLE_KEY, prefix=keys.prefix(doomed))
        await asyncio.sleep(0.01)  # more than RECHECK_SECONDS
        await gateway.rechecks.turn()
        gateway.close()
        return of_crowd, of_acme, opened_with

    of_crowd, of_acme, opened_with = run(scenario())

    assert len(of_crowd) == 1020
    assert isinstance(of_acme.ending, CredentialEnded)
    assert {stream.ending for stream in of_crowd} == {None}
    assert opened_with == len(crowd.tokens) + 1
    assert len(signatures) == opened_with
    assert len(statements) == 4


DISABLE_ORGANIZATION = "UPDATE identity.organization SET disabled = true WHERE id = :organization"
TAKEN_FROM = {
    "user-nothing": (None, None),
    "user-membership": (
        "UPDATE identity.membership SET removed_at = now() WHERE organization_id = :organization",
        PermissionEnded,
    ),
    "user-existence": ("UPDATE identity.app_user SET deleted_at = now() WHERE subject = :subject", CredentialEnded),
    "user-organization": (DISABLE_ORGANIZATION, PermissionEnded),
    "service_account-nothing": (None, None),
    "service_account-scope": (
        "UPDATE identity.service_account SET scopes = '{account:read}' WHERE client_id = :client",
        PermissionEnded,
    ),
    "service_account-enabled": (
        "UPDATE identity.service_account SET disabled = true WHERE client_id = :client",
        CredentialEnded,
    ),
    "service_account-organization": (DISABLE_ORGANIZATION, PermissionEnded),
}


@pytest.mark.parametrize("case", TAKEN_FROM)
def test_a_token_is_judged_again_with_many_others_as_it_would_be_alone(
    configuration: Config, identity: IdentityFixtures, crowd: Organization, writer: Writer, case: str
) -> None:
    statement, expected = TAKEN_FROM[case]
    organization, reader = identity.organization(), identity.service_account(["intent:read"])
    names = {
        "organization": organization.id,
        "subject": identity.subject(organization.external_id, "member"),
        "client": reader.client_id,
    }
    kind = Kind(case.partition("-")[0])
    token = organization.tokens["member"] if kind is Kind.USER else reader.token
    others = crowd.tokens["admin"] if kind is Kind.USER else identity.service_account(["intent:read"]).token
    engine = db.engine(configuration.database_url, pool_size=2, name="test")
    auth = authentication.for_service(configuration, engine)
    recheck = callers.recheck_users if kind is Kind.USER else callers.recheck_service_accounts

    batch = [admitted(auth, others, crowd), admitted(auth, token, organization), admitted(auth, others, crowd)]
    if statement:
        writer.execute(statement, **{name: value for name, value in names.items() if f":{name}" in statement})
    with engine.connect() as connection:
        endings = recheck(auth, connection, batch)
    alone = authentication.from_bearer(auth, token, str(organization.id))
    engine.dispose()

    assert [type(ending) if ending else None for ending in endings] == [None, expected, None]
    assert (alone is None) == (expected is CredentialEnded)
    assert (alone is not None and may_read(alone)) == (expected is None)


def admitted(auth: authentication.Access, token: str, organization: Organization) -> callers.Caller:
    presented = PresentedCredentials((("bearer", f"Bearer {token}"),), str(organization.id), None)
    return callers.admit(auth, presented, time.time())


def may_read(principal: Principal) -> bool:
    try:
        access.decide(principal, callers.READERS, 403)
    except problems.Problem:
        return False
    return True


def test_a_token_ends_with_the_key_that_signed_it(
    configuration: Config, identity: IdentityFixtures, acme: Organization
) -> None:
    engine = db.engine(configuration.database_url, pool_size=2, name="test")
    auth = authentication.for_service(configuration, engine)
    caller = admitted(auth, acme.tokens["member"], acme)
    assert caller.token

    withdrawn = replace(caller, token=replace(caller.token, kid="withdrawn"))
    with engine.connect() as connection:
        endings = callers.recheck_users(auth, connection, [caller, withdrawn])
    engine.dispose()

    assert endings[0] is None and isinstance(endings[1], CredentialEnded)
