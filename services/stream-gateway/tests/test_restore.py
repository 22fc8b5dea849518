"""A database put back to an earlier point in time under gateways that keep running."""

import base64
import secrets
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import grpc
import pytest
import requests

from tip_local.identity_seed import add_account
from tip_local.postgres import create_database
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform, migrate
from tip_testing.point_in_time import ArchivingPostgres
from tip_testing.servers_plugin import ValkeyServer

from .gateway_process import Gateway, gateways
from .log_writer import Writer
from .subscribers import Subscriber, connected, key, outcome, run, subscribe

pytestmark = pytest.mark.timeout(300)

KEPT, LOST = 3, 4
PROMPT_S = 15.0
"""Under a second on an idle machine."""
OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE
PATIENT = {"POLL_SECONDS": "0.8", "UNVERIFIED_SECONDS": "120"}


@pytest.fixture
def postgres(server_directory: Path) -> Iterator[ArchivingPostgres]:
    with ArchivingPostgres(server_directory / "archiving") as server:
        create_database(server.url, "tip")
        migrate(server.url_of("tip"))
        yield server


@pytest.fixture
def platform(postgres: ArchivingPostgres, valkey_server: ValkeyServer) -> Platform:
    encryption_key = base64.b64encode(secrets.token_bytes(32)).decode()
    return Platform(postgres.url_of("tip"), valkey_server.url, encryption_key)


@pytest.fixture
def acme(platform: Platform) -> Iterator[Organization]:
    identity = IdentityFixtures(platform.administrator_environment("identity"))
    yield identity.organization()
    identity.close()


@pytest.fixture
def writer(platform: Platform) -> Iterator[Writer]:
    writer = Writer(platform)
    yield writer
    writer.close()


@pytest.fixture
def account_id(platform: Platform, acme: Organization) -> UUID:
    with platform.admin() as admin:
        return add_account(admin, acme.id)


def test_streams_of_a_log_that_was_restored_end_and_new_ones_are_of_a_new_epoch(
    postgres: ArchivingPostgres,
    platform: Platform,
    acme: Organization,
    writer: Writer,
    account_id: UUID,
    tmp_path: Path,
) -> None:
    with platform.admin() as admin:
        quiet_id = add_account(admin, acme.id)
    postgres.take_base_backup()
    writer.append(account_id, KEPT)
    postgres.mark("kept")

    async def scenario(gateway: Gateway, other: Gateway) -> None:
        metadata = key(acme.api_keys["paper"])
        async with connected(gateway.target) as channel, connected(other.target) as second:
            ahead = await subscribe(channel, metadata, account_id, after=0)
            level = await subscribe(second, metadata, account_id, after=KEPT)
            quiet = await subscribe(second, metadata, quiet_id)
            await quiet.wait_for("heartbeat")
            writer.append(account_id, LOST)
            await ahead.received(KEPT + LOST)
            await level.received(LOST)
            old = only_epoch(ahead)
            assert only_epoch(level) == only_epoch(quiet) == old

            postgres.restore("kept")
            last = writer.append(account_id, LOST + 1)

            for subscriber in (ahead, level, quiet):
                assert (await subscriber.ending(PROMPT_S))[0] is OUT_OF_RANGE
            assert ahead.sequences == [1, 2, 3, 4, 5, 6, 7]
            assert level.sequences == [4, 5, 6, 7]

            for after in (0, KEPT, KEPT + LOST, None):
                assert await outcome(gateway, metadata, account_id, after=after, epoch=old) is OUT_OF_RANGE
            assert await outcome(gateway, metadata, account_id, after=last + 1) is OUT_OF_RANGE
            refused = requests.get(
                f"{gateway.events_url}/v1/accounts/{account_id}/events",
                headers={"x-api-key": acme.api_keys["paper"], "Last-Event-ID": f"{KEPT}@{old}"},
                timeout=60,
            )
            assert (refused.status_code, refused.json()["code"]) == (400, "out_of_range")

            fresh = await subscribe(channel, metadata, account_id)
            assert (await fresh.wait_for("heartbeat")).sequence == last
            resumed = await subscribe(second, metadata, account_id, after=KEPT, epoch=only_epoch(fresh))
            writer.append(account_id)
            await fresh.received(1)
            await resumed.received(LOST + 2)
            assert only_epoch(fresh) == only_epoch(resumed) != old
            assert resumed.sequences == [4, 5, 6, 7, 8, 9]

            postgres.kill()
            postgres.start()
            writer.append(account_id)
            await resumed.received(LOST + 3)  # a crash is not a restore

    with gateways(platform, tmp_path) as start:
        run(scenario(start(**PATIENT), start(**PATIENT)))
    assert reasons(platform) == ["INSTALLED", "RESTORED"]


def only_epoch(subscriber: Subscriber) -> str:
    """The epoch that every message of the stream names."""
    [epoch] = {message.epoch for message in (*subscriber.events, *subscriber.words)}
    assert epoch
    return str(epoch)


def reasons(platform: Platform) -> list[str]:
    with platform.admin() as admin:
        return list(admin.exec_driver_sql("SELECT reason FROM intents.log_epoch ORDER BY number").scalars())
