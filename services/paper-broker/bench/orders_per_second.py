"""Orders per second of a paper broker started for the purpose, and how long an answer takes.

python services/paper-broker/bench/orders_per_second.py [--orders 20000] [--connections 32] [--memory] [--symbol AAPL]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

PORT = 18_081
TOKEN = "of-this-benchmark-only"  # noqa: S105 - and of a broker that lives as long


def order(number: int, symbol: str) -> bytes:
    body = json.dumps(
        {
            "symbol": symbol,
            "qty": "1",
            "side": "buy",
            "type": "limit",
            "limit_price": "1000",
            "time_in_force": "day",
            "client_order_id": f"bench-{number}",
        }
    ).encode()
    head = (
        f"POST /v2/orders HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        f"APCA-API-KEY-ID: bench-{number % 50}\r\nAPCA-API-SECRET-KEY: secret\r\n\r\n"
    )
    return head.encode() + body


async def connection(numbers: "asyncio.Queue[int]", symbol: str, answers: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    while not numbers.empty():
        started = time.perf_counter()
        writer.write(order(numbers.get_nowait(), symbol))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        if not head.startswith(b"http/1.1 200"):
            raise SystemExit(f"refused: {body!r}")
        answers.append(time.perf_counter() - started)
    writer.close()


async def load(orders: int, connections: int, symbol: str) -> None:
    numbers: asyncio.Queue[int] = asyncio.Queue()
    for number in range(orders):
        numbers.put_nowait(number)
    answers: list[float] = []
    started = time.perf_counter()
    await asyncio.gather(*(connection(numbers, symbol, answers) for _ in range(connections)))
    took = time.perf_counter() - started
    answers.sort()
    p50, p99 = (answers[int(len(answers) * share)] * 1000 for share in (0.5, 0.99))
    sys.stdout.write(f"{orders} orders, {connections} connections: {orders / took:.0f}/s, ")
    sys.stdout.write(f"p50 {p50:.1f} ms, p99 {p99:.1f} ms\n")


def wait_until_ready() -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health/ready").close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the broker did not start")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--symbol", default="AAPL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        settings = {
            "PAPER_BROKER_PORT": str(PORT),
            "PAPER_BROKER_OPERATOR_TOKEN": TOKEN,
            "PAPER_BROKER_DATA": ":memory:" if options.memory else data,
            "PAPER_BROKER_CASH": "1000000000000",
        }
        broker = subprocess.Popen([sys.executable, "-m", "paper_broker"], env={**os.environ, **settings})
        try:
            wait_until_ready()
            asyncio.run(load(options.orders, options.connections, options.symbol))
            started = time.perf_counter()
            ledger = urllib.request.Request(
                f"http://127.0.0.1:{PORT}/sim/ledger", headers={"Authorization": f"Bearer {TOKEN}"}
            )
            with urllib.request.urlopen(ledger) as answer:  # noqa: S310 - our own broker
                lines = sum(1 for _ in answer)
            sys.stdout.write(f"ledger: {lines} lines in {time.perf_counter() - started:.2f} s\n")
        finally:
            broker.terminate()
            broker.wait()


if __name__ == "__main__":
    main()
