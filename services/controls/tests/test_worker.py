"""What controls consumes and publishes: an account deleted takes its controls along, whenever that is learnt of."""

import signal
import threading
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import create_engine, text

from accounts import worker as accounts_worker
from chassis import db, rest
from chassis.feed import Feed
from chassis.outbox import Event, Outbox
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from controls import store, usecases, worker
from controls.config import Config
from tip_testing.outbox import consuming
from tip_testing.processes import Running, running
from tip_testing.processes import start as start_process
from tip_testing.waiting import eventually

TABLES = ("account_switch", "account_limits", "symbol_manual", "symbol_time", "symbol_limits")


@pytest.fixture(scope="module")
def accounts(platform: Any) -> Any:
    """The accounts service as far as it is consumed: its outbox, relayed."""
    engine = create_engine(db.with_driver(platform.admin_url))
    yield Relay(Outbox(engine, "accounts"), Publisher(platform.redis_url), {})
    engine.dispose()


@pytest.fixture(scope="module")
def feed(platform: Any) -> Any:
    engine = create_engine(db.with_driver(platform.database_url("controls")))
    yield Feed(engine, store.SCHEMA, "accounts")
    engine.dispose()


def delete_account(platform: Any, relay: Any, account_id: UUID, event_type: str = "account.deleted") -> None:
    with relay.outbox.engine.begin() as tx:
        if event_type == "account.deleted":
            tx.execute(text("UPDATE accounts.account SET deleted_at = now() WHERE id = :id"), {"id": account_id})
        relay.outbox.append(tx, Event(event_type, {"account_id": str(account_id)}, str(account_id)))
    while relay.drain_once():
        pass


def furnish(controls: Any) -> None:
    controls.symbol("PUT", "AAPL", body={"manually_disabled": True})
    controls.symbol("PUT", "MSFT", body={"manually_disabled": True})
    controls.symbol("DELETE", "MSFT")
    controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00"})
    controls.symbol("PUT", "AAPL", "/limits", {"max_quantity": "1"})
    controls.call("PUT", "/limits", {"max_quantity": "1"})
    controls.call("PUT", "", {"trading_state": "HALTED"})


def kept(setting: Any, controls: Any) -> int:
    return sum(len(setting.rows(table, controls.account_id)) for table in TABLES)


def test_an_account_deleted_takes_its_controls_along_and_no_others(
    setting: Any, organization: Any, controls: Any, accounts: Any, feed: Any
) -> None:
    other = setting.controls(organization, setting.account(organization))
    furnish(controls)
    furnish(other)

    delete_account(setting.platform, accounts, controls.account_id)
    feed.drain(usecases.apply_account_event)

    assert (kept(setting, controls), kept(setting, other)) == (0, 6)
    assert controls.symbol("GET", "AAPL").status_code == 404


def test_events_published_while_no_consumer_ran_are_applied_once_and_in_full(
    setting: Any, organization: Any, accounts: Any, feed: Any
) -> None:
    feed.drain(usecases.apply_account_event)
    gone = [setting.controls(organization, setting.account(organization)) for _ in range(3)]
    for controls in gone:
        furnish(controls)
        delete_account(setting.platform, accounts, controls.account_id, "account.updated")
    delete_account(setting.platform, accounts, gone[0].account_id)
    delete_account(setting.platform, accounts, gone[2].account_id)

    assert feed.drain(usecases.apply_account_event) == 5
    assert feed.drain(usecases.apply_account_event) == 0
    assert [kept(setting, controls) for controls in gone] == [0, 6, 0]


def test_a_put_under_way_while_the_account_is_deleted_leaves_nothing_behind(
    setting: Any, organization: Any, controls: Any, accounts: Any, feed: Any
) -> None:
    engine = create_engine(db.with_driver(setting.platform.admin_url))
    with engine.connect() as late:
        with late.begin():
            scope = usecases.model.Scope(organization.id, controls.account_id, "AAPL")
            store.keep_account(late, controls.account_id)
            store.lock(late, usecases.model.SymbolManual, scope)
            store.write(late, usecases.model.SymbolManual, scope, {"manually_disabled": True})
            delete_account(setting.platform, accounts, controls.account_id)
            consumer = threading.Thread(target=feed.drain, args=(usecases.apply_account_event,))
            consumer.start()
            consumer.join(0.3)
            waited = consumer.is_alive()
        consumer.join()
    engine.dispose()

    assert waited, "the consumer must not overtake the writer"
    assert kept(setting, controls) == 0
    assert controls.symbol("PUT", "AAPL", body={"manually_disabled": True}).status_code == 404


def breach(platform: Any, controls: Any, organization: Any) -> None:
    """Intents reports that the account lost too much, and controls consumes it."""
    intents = create_engine(db.with_driver(platform.admin_url))
    relay = Relay(Outbox(intents, "intents"), Publisher(platform.redis_url), {})
    ids = {"account_id": str(controls.account_id), "organization_id": str(organization.id)}
    with intents.begin() as tx:
        relay.outbox.append(tx, Event("daily_loss.breached", {**ids, "loss": "101", "max_daily_loss": "100"}))
    while relay.drain_once():
        pass
    intents.dispose()
    engine = create_engine(db.with_driver(platform.database_url("controls")))
    handle = worker.SOURCES["intents"](Outbox(engine, "controls"))
    Feed(engine, store.SCHEMA, "intents").drain(handle)
    engine.dispose()


def test_an_account_that_lost_too_much_only_reduces_from_then_on(
    setting: Any, organization: Any, controls: Any
) -> None:
    breach(setting.platform, controls, organization)

    switch = controls.call("GET").json
    assert (switch["trading_state"], switch["version"]) == ("REDUCING", 1)
    assert switch["reason"] == "system: the account lost 101 since its day began, of max_daily_loss 100"
    assert [event["control"] for event in setting.events(controls.account_id)] == ["account_switch"]
    controls.call("PUT", "", {"trading_state": "HALTED"})
    breach(setting.platform, controls, organization)
    assert controls.call("GET").json["trading_state"] == "HALTED"


@pytest.fixture
def start(platform: Any) -> Any:
    """Starts `python -m controls.worker <job>`, and ends what it started."""
    with ExitStack() as started:

        def run(job: str) -> Running:
            environment = platform.environment("controls")
            return started.enter_context(running("-m", "controls.worker", job, environment=environment))

        yield run


def test_a_deleted_account_wakes_the_consumer(
    setting: Any, organization: Any, accounts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "FIRST_S", 600.0)
    queue_url = f"{setting.platform.redis_url.rpartition('/')[0]}/7"  # where no other test leaves messages
    config = Config.from_env(setting.platform.environment("controls", QUEUE_URL=queue_url))
    relay = Relay(accounts.outbox, Publisher(queue_url), accounts_worker.ROUTES)
    with consuming(worker.consumer(config, "controls-consumer"), worker.QUEUE, queue_url):
        for _ in range(3):
            controls = setting.controls(organization, setting.account(organization))
            furnish(controls)
            delete_account(setting.platform, relay, controls.account_id)
            eventually(lambda controls=controls: kept(setting, controls) == 0)


def test_the_consumer_catches_up_after_being_killed_and_ends_cleanly(
    setting: Any, organization: Any, accounts: Any, start: Any
) -> None:
    first, second = (setting.controls(organization, setting.account(organization)) for _ in range(2))
    furnish(first)
    furnish(second)
    killed = start("consumer")
    delete_account(setting.platform, accounts, first.account_id)
    eventually(lambda: kept(setting, first) == 0)
    killed.end(signal.SIGKILL)

    delete_account(setting.platform, accounts, second.account_id)
    assert kept(setting, second) == 6
    again = start("consumer")
    eventually(lambda: kept(setting, second) == 0)

    assert again.end(signal.SIGTERM) == 0


def test_the_relay_publishes_every_change_in_order_on_the_feed(setting: Any, controls: Any, start: Any) -> None:
    for state in ("HALTED", "REDUCING", "ACTIVE"):
        controls.call("PUT", "", {"trading_state": state})
    relay = start("relay")

    def published() -> list[int]:
        with setting.platform.admin() as admin:
            found = admin.execute(
                text(
                    "SELECT (payload->>'version')::int FROM controls_api.feed "
                    "WHERE payload->>'account_id' = :id ORDER BY position"
                ),
                {"id": str(controls.account_id)},
            )
            return list(found.scalars())

    eventually(lambda: len(published()) == 3)
    assert published() == [1, 2, 3]
    assert relay.end(signal.SIGTERM) == 0


def test_a_worker_without_configuration_stops_with_one_clear_line() -> None:
    nothing = {"DATABASE_URL": "", "REDIS_URL": ""}
    for process in [start_process("-m", "controls.worker", job, environment=nothing) for job in ("consumer", "relay")]:
        assert process.wait() == 2
        assert "DATABASE_URL" in process.output() and "Traceback" not in process.output()
