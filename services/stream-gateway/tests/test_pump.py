"""Reading what is new: however much one organization's logs have grown, another's event is in the next read."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from chassis.principals import Kind, Principal
from stream_gateway import schemas
from stream_gateway.callers import Caller
from stream_gateway.config import Config
from stream_gateway.gateway import Gateway
from stream_gateway.hub import BATCH
from stream_gateway.model import Account, Subscription
from stream_gateway.pump import READ_EVENTS
from stream_gateway.schemas import Entry
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .log_writer import Writer
from .subscribers import run

ACCOUNTS = 20
IDLE_IN_TRANSACTION = text("""
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = 'tip_stream_gateway' AND state = 'idle in transaction'
""")


def test_a_read_is_bounded_and_has_something_for_every_organization(
    platform: Platform, identity: IdentityFixtures, acme: Organization, writer: Writer
) -> None:
    crowd = identity.organization()
    with platform.admin() as admin:
        of_crowd = [add_account(admin, crowd.id) for _ in range(ACCOUNTS)]
        of_acme = add_account(admin, acme.id)
    epoch = writer.execute("SELECT CAST(intents_api.current_log_epoch() AS text)").scalar_one()

    async def scenario() -> tuple[int, int, int]:
        gateway = Gateway(Config.from_env(platform.environment("stream_gateway")))

        def opened(account_id: UUID, organization_id: UUID) -> None:
            caller = Caller(Principal(Kind.API_KEY, str(account_id), organization_id))
            account = Account(account_id, organization_id, 0, epoch)
            gateway.streams.open(caller, account, Subscription(account_id, frozenset({1})), "grpc", 0.0)

        for account_id in of_crowd:
            opened(account_id, crowd.id)
        opened(of_acme, acme.id)
        for account_id in of_crowd:
            writer.append(account_id, BATCH)
        writer.append(of_acme)
        hubs = gateway.streams.hubs
        await gateway.pump.turn()
        first, of_other = sum(hub.last for hub in hubs.values()), hubs[of_acme].last
        while sum(hub.last for hub in hubs.values()) < ACCOUNTS * BATCH + 1:
            await gateway.pump.turn()
        gateway.close()
        return first, of_other, sum(hub.last for hub in hubs.values())

    first, of_other, in_the_end = run(scenario())

    assert of_other == 1
    assert first <= READ_EVENTS + BATCH < ACCOUNTS * BATCH
    assert in_the_end == ACCOUNTS * BATCH + 1


def test_events_are_encoded_after_the_transaction_that_read_them(
    platform: Platform, acme: Organization, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many of them take their time on a busy machine, and Postgres ends a transaction that is idle for long."""
    with platform.admin() as admin:
        account_id = add_account(admin, acme.id)
    writer.append(account_id, 3)
    gateway = Gateway(Config.from_env(platform.environment("stream_gateway")))
    encode, idle = schemas.entry, list[int]()

    def encoded(*event: Any) -> Entry:
        with platform.admin() as admin:
            idle.append(admin.execute(IDLE_IN_TRANSACTION).scalar_one())
        return encode(*event)

    monkeypatch.setattr(schemas, "entry", encoded)
    _, found = run(gateway.log.after({account_id: 0}))
    gateway.close()

    assert len(found[account_id]) == len(idle) == 3
    assert not any(idle)
