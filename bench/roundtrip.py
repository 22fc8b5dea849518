"""From a POST to an order at the broker: idle latency, and an executor's throughput: `make bench NAME=roundtrip`.

Latency is measured over the whole way: gunicorn, NOTIFY, executor, HTTP, the paper broker, and back through the stream
gateway to a subscriber. BENCH_QUICK=1 is a trial with few rows.
"""

import json
import queue
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime

import grpc
import requests

from bench.harness import Ratio, report
from bench.roundtrip_throughput import QUICK, throughput
from bench.submit_stage import Stage, stage
from tip_local.processes import free_port
from tip_testing.commands import create
from trading_proto import trading_pb2, trading_pb2_grpc

SAMPLES = 50 if QUICK else 400
OPERATOR_TOKEN = "of-this-benchmark-only"
OPERATOR = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}


@contextmanager
def gateway(on: Stage) -> Iterator[str]:
    port = str(free_port())
    with on.running(["-m", "stream_gateway"], "stream_gateway", PORT=port, EVENTS_PORT="0", LOG_LEVEL="warning"):
        yield f"127.0.0.1:{port}"


class Subscriber:
    """A client of the stream: when it received the acceptance of each intent."""

    def __init__(self, on: Stage, target: str) -> None:
        self._channel = grpc.insecure_channel(target)
        grpc.channel_ready_future(self._channel).result(timeout=30)
        request = trading_pb2.SubscribeEventsRequest(
            trading_account_id=str(on.accounts[0]), subscriptions=[trading_pb2.EVENT_TYPE_BROKER_ORDER]
        )
        subscribe = trading_pb2_grpc.TradingServiceStub(self._channel).SubscribeEvents
        self._call = subscribe(request, metadata=[("x-api-key", on.api_key)])
        self._received: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(grpc.RpcError):  # the end
            for event in self._call:
                if event.broker_order.status == "ACCEPTED":
                    self._received.put((event.broker_order.intent_id, time.time()))

    def accepted_at(self, intent_id: str) -> float:
        while True:
            accepted, moment = self._received.get(timeout=10)
            if accepted == intent_id:
                return moment

    def close(self) -> None:
        self._call.cancel()
        self._channel.close()


def latencies(on: Stage, base: str, broker: str, subscriber: Subscriber) -> tuple[list[float], list[float]]:
    """Milliseconds from the answer of a POST to the broker's acceptance, and to its event at a subscriber."""
    session, sent = requests.Session(), {}
    delivered: list[float] = []
    for _ in range(SAMPLES):
        answer = session.post(
            f"{base}/v1/accounts/{on.accounts[0]}/intents",
            json=create("SIM.OPEN", "1"),
            headers={"x-api-key": on.api_key},
            timeout=5,
        )
        answered = time.time()
        action = answer.json()
        sent[f"tip-{action['id'].replace('-', '')}"] = answered
        delivered.append(1000 * (subscriber.accepted_at(action["intent_id"]) - answered))
        time.sleep(0.03)
    ledger = [
        json.loads(line)
        for line in requests.get(f"{broker}/sim/ledger", headers=OPERATOR, timeout=30).text.splitlines()
    ]
    made = {order["client_order_id"]: datetime.fromisoformat(order["created_at"]) for order in ledger}
    return [1000 * (made[name].timestamp() - answered) for name, answered in sent.items()], delivered


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def idle(on: Stage) -> list[Ratio]:
    port = free_port()
    broker = f"http://127.0.0.1:{port}"
    with (
        on.running(
            ["-m", "paper_broker"],
            PAPER_BROKER_PORT=str(port),
            PAPER_BROKER_DATA=":memory:",
            PAPER_BROKER_OPERATOR_TOKEN=OPERATOR_TOKEN,
        ),
        on.running(["-m", "intents.worker", "executor"], PAPER_BROKER_URL=broker),
        on.running(["-m", "intents.worker", "reconciler"], PAPER_BROKER_URL=broker),
        on.intents() as base,
        gateway(on) as target,
        closing(Subscriber(on, target)) as subscriber,
    ):
        time.sleep(5)
        accepted, delivered = latencies(on, base, broker, subscriber)
    return [
        Ratio("idle: answered to accepted, p50", "ms", 15.0, statistics.median(accepted), 0.0, 1.0, True),
        Ratio("idle: answered to accepted, p99", "ms", 60.0, _percentile(accepted, 0.99), 0.0, 1.0, True),
        Ratio(
            "idle: answered to stream event delivered, p50", "ms", 25.0, statistics.median(delivered), 0.0, 1.0, True
        ),
    ]


def main() -> None:
    with stage() as on:
        ratios = idle(on)
        ratios.append(throughput(on))
    report(
        "Round trip to the broker",
        ratios,
        versions=("celery", "kombu", "requests", "psycopg2-binary"),
        command="make bench NAME=roundtrip",
        notes="Latencies: the reference is the goal. One executor process, one Celery worker (pool solo)",
    )


if __name__ == "__main__":
    main()
