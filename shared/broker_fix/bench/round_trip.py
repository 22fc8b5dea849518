"""How long an order takes through the gateway and QuickFIX and back, and how many one session carries in a second.

    python shared/broker_fix/bench/round_trip.py [orders] [threads]

The database is a real one with every commit on disk.
"""

import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tip_broker_fix.gateway.credentials import secret_key
from tip_brokers import Broker, BrokerSettings, find
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_testing.broker_conformance import limit
from tip_testing.fix_acceptor import Acceptor, Gateway, prepare, start_gateway
from tip_testing.fix_acceptor.gateway import ACCOUNT_KEY
from tip_testing.waiting import eventually


def broker_at(gateway: Gateway) -> Broker:
    settings = BrokerSettings({"FIX_PAPER_URL": gateway.url}, read_seconds=10.0)
    secret = {"account": "ACC1", "secret_key": secret_key(ACCOUNT_KEY, "ACC1")}
    return find("fix").connect("paper", settings).account(secret)


def seconds(broker: Broker) -> float:
    began = time.perf_counter()
    broker.create(limit("OPEN"))
    return time.perf_counter() - began


def measure(gateway: Gateway, orders: int, threads: int) -> None:
    broker = broker_at(gateway)
    alone = sorted(seconds(broker) for _ in range(200))
    sys.stdout.write(
        f"one after the other: p50 {1000 * statistics.median(alone):.1f} ms, p99 {1000 * alone[-2]:.1f} ms\n"
    )
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        together = sorted(pool.map(lambda _: seconds(broker), range(orders)))
    rate = orders / (time.perf_counter() - began)
    sys.stdout.write(
        f"{threads} at once: {rate:.0f} orders a second, p50 {1000 * statistics.median(together):.1f} ms\n"
    )


def main(orders: int = 2000, threads: int = 64) -> None:
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder, "postgres")) as postgres:
        create_database(postgres.url, "fix")
        database_url = prepare(postgres.url_of("fix"))
        acceptor = Acceptor(Path(folder, "broker"))
        gateway = start_gateway(database_url, acceptor.port, FIX_ANSWER_SECONDS="10", FIX_HEARTBEAT_SECONDS="10")
        try:
            eventually(gateway.is_ready)
            measure(gateway, orders, threads)
        finally:
            gateway.process.end()
            acceptor.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
