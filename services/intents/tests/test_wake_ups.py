"""Whoever is woken does not wait for its poll."""

import pytest

from accounts import worker as accounts_worker
from chassis import db, rest
from chassis.outbox import Event, Outbox
from chassis.outbox.notify import NotifyListener
from chassis.outbox.relay import Relay, Routes
from chassis.queues import Publisher
from controls import worker as controls_worker
from intents import store, worker
from intents.config import Config
from tip_testing.outbox import consuming

from .conftest import Desk
from .test_bulk_operations import cancel_all
from .test_feed_consumer import until_logged


@pytest.mark.parametrize(
    ("source", "routes", "event_type"),
    [("accounts", accounts_worker.ROUTES, "account.updated"), ("controls", controls_worker.ROUTES, "control.updated")],
    ids=["accounts", "controls"],
)
def test_an_event_of_another_service_wakes_the_consumer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, source: str, routes: Routes, event_type: str
) -> None:
    monkeypatch.setattr(rest, "FIRST_S", 600.0)
    queue_url = f"{desk.platform.redis_url.rpartition('/')[0]}/7"  # where no other test leaves messages
    config = Config.from_env(desk.platform.environment("intents", QUEUE_URL=queue_url))
    outbox = Outbox(db.engine(desk.platform.database_url(source), pool_size=1, name="tests"), source)
    relay = Relay(outbox, Publisher(queue_url), routes)
    about = {"organization_id": str(desk.organization.id), "account_id": str(desk.account_id)}
    with consuming(worker.consumer(config, "intents-consumer"), worker.QUEUE, queue_url):
        for version in range(3):
            with outbox.begin() as tx:
                outbox.append(tx, Event(event_type, {**about, "version": version}))
            relay.drain_once()
            until_logged(desk, version + 1)
    outbox.engine.dispose()


def test_a_bulk_operation_wakes_the_scheduler(desk: Desk) -> None:
    listener = NotifyListener(desk.deps.engine, store.SCHEMA, store.BULK_OPERATIONS)
    listener.wait(0)  # from now on it listens

    assert not listener.wait(0.1)
    cancel_all(desk)
    assert listener.wait(60) == {store.BULK_OPERATIONS}
