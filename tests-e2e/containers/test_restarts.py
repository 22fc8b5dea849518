"""Stopping and restarting: every process ends by itself on SIGTERM, and callers notice nothing."""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import grpc
import pytest
import requests

from tip_testing.commands import create
from tip_testing.waiting import eventually
from trading_proto import trading_pb2, trading_pb2_grpc

ROLLING_RESTART = Path(__file__).resolve().parents[2] / "deploy" / "containers" / "rolling_restart.sh"
pytestmark = pytest.mark.timeout(1_200)  # every container restarts, and a machine may have more to do than that

OK = 200
TOGETHER_S = 30
"""All processes at once share few cores; that each alone ends within ten seconds is seen when they restart in turn."""

ONE_SHOTS = {"prepare", "migrate", "seed"}
NOT_OURS = {"postgres", "redis", "rabbitmq", "glewlwyd", "ingress"}
READ = ("identity", "accounts", "controls", "intents")
AT_ONCE = 3
"""Services that restart at the same time, each replica by replica."""

SUBSCRIBERS = 6
EVERY_TYPE = [value for value in trading_pb2.EventType.values() if value]


class InBackground:
    """Does one thing over and over, in threads of its own, for as long as the block lasts."""

    def __init__(self, threads: int = 1) -> None:
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(threads)
        self._threads = threads

    def once(self) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        """End what `once` is waiting for."""

    def __enter__(self) -> Self:
        self._running = [self._pool.submit(self._repeat) for _ in range(self._threads)]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        while wait(self._running, timeout=0.2).not_done:
            self.interrupt()  # again and again: it may have been just about to begin
        self._pool.shutdown()
        for future in self._running:
            future.result()

    def _repeat(self) -> None:
        while not self._over.is_set():
            self.once()

    @property
    def over(self) -> bool:
        return self._over.is_set()


class Reader(InBackground):
    """Goes on reading a path through the ingress, and counts the answers; of those that refuse, the whole text."""

    def __init__(self, stack: Any, path: str) -> None:
        super().__init__()
        self._caller, self.path = stack.user("acme"), path
        self.answers: Counter[Any] = Counter()

    def once(self) -> None:
        try:
            answer = self._caller("GET", self.path)
            self.answers[answer.status_code if answer.status_code == OK else answer.text] += 1
        except requests.RequestException as error:
            self.answers[type(error).__name__] += 1


class Trader(InBackground):
    """Submits orders one after the other, and repeats one that was not answered with the same Idempotency-Key."""

    def __init__(self, stack: Any, account: str) -> None:
        super().__init__()
        self._caller = stack.key("acme")
        self.path, self.symbol = f"/v1/accounts/{account}/intents", f"R{uuid4().hex[:8].upper()}"
        self.accepted: list[str] = []
        self.repeated: Counter[Any] = Counter()

    def once(self) -> None:
        key = uuid4().hex
        while (answer := self._submit(create(self.symbol, "0.001"), key)).status_code != 201:
            assert answer.status_code in (409, 429, 502, 503, 504), answer.text
            self.repeated[answer.status_code] += 1
            time.sleep(0.2)
        self.accepted.append(answer.json()["intent_id"])
        time.sleep(0.1)

    def _submit(self, body: dict[str, Any], key: str) -> requests.Response:
        answer: requests.Response = self._caller("POST", self.path, body, **{"Idempotency-Key": key})
        return answer


class Subscriber(InBackground):
    """Reads everything of an account, and resumes after the last event it has whenever its stream ends."""

    def __init__(self, stack: Any, account: str) -> None:
        super().__init__()
        self._stack, self._account = stack, account
        self._key = stack.organization("acme")["api_keys"]["paper"]
        self._call: Any = None
        self.sequences: list[int] = []
        self.ends: Counter[grpc.StatusCode] = Counter()

    def once(self) -> None:
        wanted = trading_pb2.SubscribeEventsRequest(
            trading_account_id=self._account,
            subscriptions=EVERY_TYPE,
            resume_after_sequence=self.sequences[-1] if self.sequences else 0,
        )
        with self._stack.channel() as channel:
            stub = trading_pb2_grpc.TradingServiceStub(channel)
            self._call = stub.SubscribeEvents(wanted, metadata=[("x-api-key", self._key)])
            try:
                self.sequences += (event.sequence for event in self._call if event.event_id)
            except grpc.RpcError as error:
                if not self.over:
                    self.ends[error.code()] += 1
                    time.sleep(0.2)

    def interrupt(self) -> None:
        if self._call is not None:
            self._call.cancel()


@dataclass(frozen=True)
class Restarted:
    """What everyone saw while every service was restarted."""

    readers: tuple[Reader, ...]
    trader: Trader
    subscribers: tuple[Subscriber, ...]
    restarts: list[str]


def new_account(stack: Any) -> str:
    wanted = {"name": "restarts", "broker": "paper", "environment": "paper"}
    return str(stack.user("acme")("POST", "/v1/accounts", wanted).json()["id"])


def in_turn(service: str) -> list[str]:
    """Restart the replicas of a service one by one; what was printed about each."""
    done = subprocess.run([str(ROLLING_RESTART), service], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def restarted(stack: Any, containers: Any) -> Iterator[Restarted]:
    account = new_account(stack)
    paths = (
        "/v1/users/me",
        f"/v1/accounts/{account}",
        f"/v1/controls/accounts/{account}/symbols",
        f"/v1/accounts/{account}/intents",
    )
    readers = tuple(Reader(stack, path) for path in paths)
    trader = Trader(stack, account)
    subscribers = tuple(Subscriber(stack, account) for _ in range(SUBSCRIBERS))
    services = [name for name in containers.names if name not in ONE_SHOTS | NOT_OURS]
    with ExitStack() as watching:
        for subscriber in subscribers:
            watching.enter_context(subscriber)
        with ExitStack() as calling:
            for caller in (*readers, trader):
                calling.enter_context(caller)
            time.sleep(1)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                restarts = [line for lines in pool.map(in_turn, services) for line in lines]
            time.sleep(1)
        eventually(lambda: not unfilled(stack, trader), 180)
        eventually(lambda: len({tuple(subscriber.sequences[-1:]) for subscriber in subscribers}) == 1)
        yield Restarted(readers, trader, subscribers, restarts)


def unfilled(stack: Any, trader: Trader) -> list[str]:
    def status(intent_id: str) -> str:
        return str(stack.key("acme")("GET", f"{trader.path}/{intent_id}").json()["state"]["status"])

    return [found for intent_id in trader.accepted if (found := status(intent_id)) != "FILLED"]


def test_no_reader_is_refused_while_every_service_restarts(containers: Any, restarted: Restarted) -> None:
    refused = {reader.path: reader.answers for reader in restarted.readers if set(reader.answers) != {OK}}

    assert refused == {}, "\n".join(line for service in READ for line in containers.warnings(service))
    assert all(reader.answers[OK] > 50 for reader in restarted.readers)


def test_every_order_accepted_while_every_service_restarts_is_executed_once(stack: Any, restarted: Restarted) -> None:
    trader = restarted.trader

    assert unfilled(stack, trader) == []
    assert len(trader.accepted) == len(set(trader.accepted)) > 50
    operator = {"Authorization": f"Bearer {stack.local['paper_broker_operator_token']}"}
    ledger = requests.get(
        stack.local["paper_broker_url"] + "/sim/ledger", headers=operator, timeout=10
    ).text.splitlines()
    orders = [json.loads(line) for line in ledger]
    assert len({order["client_order_id"] for order in orders}) == len(orders)
    assert sum(order["symbol"] == trader.symbol for order in orders) == len(trader.accepted), trader.repeated


def test_every_stream_open_while_the_gateways_restart_resumes_without_gap_or_duplicate(restarted: Restarted) -> None:
    last = min(subscriber.sequences[-1] for subscriber in restarted.subscribers)

    assert last > 3 * len(restarted.trader.accepted)
    for subscriber in restarted.subscribers:
        assert subscriber.sequences[:last] == list(range(1, last + 1))
        assert set(subscriber.ends) == {grpc.StatusCode.UNAVAILABLE}


def stop(container: Any) -> tuple[str, int]:
    """Its exit code after SIGTERM: 137 if it had to be killed."""
    container.stop(timeout=TOGETHER_S)
    container.reload()
    return container.name, container.attrs["State"]["ExitCode"]


def test_every_process_restarted_under_load_ends_by_itself_within_ten_seconds(restarted: Restarted) -> None:
    assert len(restarted.restarts) > 20
    assert [line for line in restarted.restarts if "killed" in line] == []


def test_all_processes_together_end_by_themselves(stack: Any, containers: Any) -> None:
    """Also the gateways, which have streams open, and the ingress."""
    left_out = ONE_SHOTS | NOT_OURS - {"ingress"}
    service = "com.docker.compose.service"
    stopped = [container for container in containers.docker() if container.labels[service] not in left_out]
    account = stack.account("acme")
    stack.key("acme")("POST", f"/v1/accounts/{account}/intents", create())
    with Subscriber(stack, account) as subscriber:
        eventually(lambda: subscriber.sequences)
        with ThreadPoolExecutor(len(stopped)) as pool:
            results = list(pool.map(stop, stopped))
        for container in stopped:
            container.start()
        containers.wait_until_healthy()

    assert len(results) > 20
    assert [(name, code) for name, code in results if code != 0] == []
