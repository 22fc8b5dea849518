"""Group commit: nothing is published before it is on disk, and nothing after the disk failed."""

import asyncio
import sqlite3
import threading
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from paper_broker.faults import Faults, Settings
from paper_broker.journal import Journal
from paper_broker.model import Exchange, Kind, NewOrder, Rules, Side, TimeInForce
from paper_broker.model.prices import Prices, Tape, Walk
from paper_broker.store import Store
from paper_broker.usecases import Broker, OrderQuery


class GatedStore(Store):
    """A disk that takes as long as the test wants, and counts its commits."""

    def __init__(self, folder):
        super().__init__(str(folder), in_memory=False)
        self.gate, self.commits = threading.Event(), 0

    def write(self, batch):
        self.gate.wait(60)
        super().write(batch)
        self.commits += 1


def exchange():
    return Exchange(Rules("seed"), Prices(Walk("seed"), Tape([])))


def wanted(client_order_id=None):
    return NewOrder("SIM.OPEN", Side.BUY, Kind.MARKET, TimeInForce.GTC, client_order_id, qty=Decimal(1))


def changes(count=1):
    market = exchange()
    for _ in range(count):
        market.submit("alpha", wanted(), datetime(2026, 1, 1, tzinfo=UTC))
        yield market.state.drain()


def test_answers_and_events_wait_for_the_disk(tmp_path):
    async def scenario():
        store, published = GatedStore(tmp_path), []
        journal = Journal(store, published.extend)
        journal.add(next(changes()))
        writer = asyncio.create_task(journal.run())
        answer = asyncio.create_task(journal.committed())
        await asyncio.sleep(0.05)
        read_meanwhile = asyncio.create_task(journal.committed())
        await asyncio.sleep(0.05)
        assert (answer.done(), read_meanwhile.done(), published) == (False, False, [])

        store.gate.set()
        await asyncio.gather(answer, read_meanwhile)
        await asyncio.sleep(0)
        assert [event.kind for event in published] == ["new"]
        writer.cancel()
        await journal.close()
        store.close()

    asyncio.run(scenario())


def test_reads_do_not_show_what_is_not_on_disk_yet(tmp_path):
    async def scenario():
        store, market = GatedStore(tmp_path), exchange()
        journal = Journal(store, lambda events: None)
        broker = Broker(market, store, journal, Faults("seed", Settings()), later=lambda work: None)
        writer = asyncio.create_task(journal.run())
        order = asyncio.create_task(broker.submit("alpha", wanted("mine")))
        await asyncio.sleep(0.05)
        order_id = market.state.by_client_id("alpha", "mine").id
        reads = [
            broker.order_by_client_id("alpha", "mine"),
            broker.order("alpha", order_id),
            broker.orders("alpha", OrderQuery()),
            broker.account("alpha"),
            broker.positions("alpha"),
            broker.summary(),
        ]
        tasks = [order, *map(asyncio.ensure_future, reads)]
        await asyncio.sleep(0.05)
        assert [task.done() for task in tasks] == [False] * 7

        store.gate.set()
        await asyncio.gather(*tasks)
        writer.cancel()
        await journal.close()
        store.close()

    asyncio.run(scenario())


def test_commands_that_come_during_a_write_share_the_next_one(tmp_path):
    async def scenario():
        store = GatedStore(tmp_path)
        journal = Journal(store, lambda events: None)
        writer = asyncio.create_task(journal.run())
        answers = []
        for change in changes(20):
            journal.add(change)
            answers.append(asyncio.create_task(journal.committed()))
            await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(*answers)
        assert store.commits <= 2
        assert store.summary()["orders"] == 20
        writer.cancel()
        await journal.close()
        store.close()

    asyncio.run(scenario())


def test_disk_that_fails_is_published_to_callers_and_ends_the_journal(tmp_path):
    async def scenario():
        store, published = Store(str(tmp_path), in_memory=False), []
        journal = Journal(store, published.extend)
        journal.add(next(changes()))
        store.close()
        answer = asyncio.create_task(journal.committed())
        with pytest.raises(sqlite3.ProgrammingError):
            await journal.run()
        with pytest.raises(sqlite3.ProgrammingError):
            await answer
        with pytest.raises(sqlite3.ProgrammingError):
            await journal.committed()
        assert published == []
        await journal.close()

    asyncio.run(scenario())
