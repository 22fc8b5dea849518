"""How long an order takes through the gateway and QuickFIX and back, and how many one session carries in a second.

    python shared/broker_fix/bench/round_trip.py [orders] [connections]

The database is a real one with every commit on disk.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

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


def requests(orders: int) -> Iterator[bytes]:
    """Made beforehand: on a small machine the load must not cost more than what it loads."""
    headers = f"Host: gateway\r\nAPCA-API-KEY-ID: ACC1\r\nAPCA-API-SECRET-KEY: {secret_key(ACCOUNT_KEY, 'ACC1')}"
    for number in range(orders):
        order = {"symbol": "OPEN", "qty": "1", "side": "buy", "type": "limit", "limit_price": "10"}
        body = json.dumps({**order, "time_in_force": "gtc", "client_order_id": f"load-{number}"})
        yield f"POST /v2/orders HTTP/1.1\r\n{headers}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def send(url: str, waiting: Iterator[bytes]) -> list[float]:
    """One connection, the next order as soon as the last one is answered; the seconds of each."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    taken = []
    for message in waiting:
        began = time.perf_counter()
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
        if b" 200 " not in head[:20]:
            raise SystemExit(f"bench: {head.decode()}")
        taken.append(time.perf_counter() - began)
    writer.close()
    return taken


async def load(url: str, orders: int, connections: int) -> list[float]:
    waiting = iter(list(requests(orders)))
    return [one for of in await asyncio.gather(*(send(url, waiting) for _ in range(connections))) for one in of]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(gateway: Gateway, orders: int, connections: int) -> None:
    broker = broker_at(gateway)
    alone = sorted(seconds(broker) for _ in range(200))
    sys.stdout.write(
        f"one after the other: p50 {1000 * statistics.median(alone):.1f} ms, p99 {1000 * alone[-2]:.1f} ms\n"
    )
    began, cpu = time.perf_counter(), cpu_seconds(gateway.process.pid)
    together = asyncio.run(load(gateway.url, orders, connections))
    rate = orders / (time.perf_counter() - began)
    cost = 1000 * (cpu_seconds(gateway.process.pid) - cpu) / orders
    sys.stdout.write(
        f"{connections} at once: {rate:.0f} orders a second, p50 {1000 * statistics.median(together):.1f} ms, "
        f"CPU of the gateway {cost:.2f} ms an order\n"
    )


def main(orders: int = 5000, connections: int = 64) -> None:
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder, "postgres")) as postgres:
        create_database(postgres.url, "fix")
        database_url = prepare(postgres.url_of("fix"))
        acceptor = Acceptor(Path(folder, "broker"))
        gateway = start_gateway(database_url, acceptor.port, FIX_ANSWER_SECONDS="10", FIX_HEARTBEAT_SECONDS="10")
        try:
            eventually(gateway.is_ready)
            measure(gateway, orders, connections)
        finally:
            gateway.process.end()
            acceptor.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
