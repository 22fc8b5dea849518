"""Stopping and restarting: every process ends by itself when asked to, and callers notice nothing."""

import json
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

ROLLING_RESTART = Path(__file__).resolve().parents[2] / "deploy" / "containers" / "rolling_restart.sh"
GRACE_S = 10
WORKERS = 4
ONE_SHOTS = {"prepare", "migrate", "seed"}


def stop(container: Any) -> tuple[str, float, int]:
    """How long it took to end after SIGTERM, and its exit code: 137 if it had to be killed."""
    began = time.monotonic()
    container.stop(timeout=GRACE_S)
    took = time.monotonic() - began
    container.reload()
    return container.name, took, container.attrs["State"]["ExitCode"]


class Load:
    """Callers that go on asking through the ingress, and write down every answer that is not the expected one."""

    def __init__(self, stack: Any, request: Any) -> None:
        self._stack, self._request = stack, request
        self._stop = threading.Event()
        self.answers: Counter[Any] = Counter()
        self._threads = [threading.Thread(target=self._ask) for _ in range(WORKERS)]

    def _ask(self) -> None:
        with requests.Session() as session:
            while not self._stop.is_set():
                self.answers[self._once(session)] += 1

    def _once(self, session: requests.Session) -> Any:
        try:
            return self._request(session).status_code
        except requests.RequestException as error:
            return type(error).__name__

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def reading(stack: Any, path: str) -> Any:
    headers = {"Authorization": f"Bearer {stack.organization('acme')['tokens']['admin']}"}
    return lambda session: session.get(
        stack.local["base_url"] + path, headers=headers, timeout=10, verify=str(stack.ca)
    )


@pytest.mark.parametrize("service", ["identity", "accounts", "controls", "intents"])
def test_a_rolling_restart_under_load_refuses_nobody(stack: Any, containers: Any, service: str) -> None:
    account = stack.account("acme")
    path = {
        "identity": "/v1/users/me",
        "accounts": f"/v1/accounts/{account}",
        "controls": f"/v1/controls/accounts/{account}/symbols",
        "intents": f"/v1/accounts/{account}/intents",
    }[service]

    with Load(stack, reading(stack, path)) as load:
        time.sleep(1)
        subprocess.run([str(ROLLING_RESTART), service], check=True)
        time.sleep(1)

    assert load.answers.keys() == {200}, load.answers
    assert load.answers[200] > 100


def test_every_process_ends_by_itself_within_ten_seconds(containers: Any) -> None:
    asked = [
        container
        for container in containers.docker()
        if container.labels["com.docker.compose.service"] not in ONE_SHOTS | {"postgres", "redis"}
    ]
    results = [stop(container) for container in asked]
    for container in asked:
        container.start()
    containers.wait_until_healthy()

    slow_or_killed = [result for result in results if result[1] >= GRACE_S or result[2] != 0]
    assert slow_or_killed == []
    assert len(results) > 10


class Trader:
    """Submits orders one after the other, and repeats one that was not answered with the same Idempotency-Key."""

    def __init__(self, stack: Any) -> None:
        self._stack, self._stop = stack, threading.Event()
        self.path = f"/v1/accounts/{stack.account('acme')}/intents"
        self.accepted: list[str] = []
        self.repeated: Counter[Any] = Counter()
        self._thread = threading.Thread(target=self._trade)

    def _trade(self) -> None:
        payload = {"symbol": "ROLL", "order_side": "BUY", "spec": {"Market": {"quantity": "0.001"}}}
        body = {"command": {"type": "CREATE", "payload": payload}}
        while not self._stop.is_set():
            self.accepted.append(self._submit(body, uuid4().hex))
            time.sleep(0.02)

    def _submit(self, body: dict[str, Any], key: str) -> str:
        while True:
            answer = self._stack.key("acme")("POST", self.path, body, **{"Idempotency-Key": key})
            if answer.status_code == 201:
                return str(answer.json()["intent_id"])
            assert answer.status_code in (409, 502, 503, 504), answer.text
            self.repeated[answer.status_code] += 1
            time.sleep(0.2)

    def __enter__(self) -> "Trader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_orders_submitted_while_their_services_restart_are_all_executed_once(stack: Any) -> None:
    with Trader(stack) as trader:
        subprocess.run([str(ROLLING_RESTART), "intents", "executor", "intents-relay", "reconciler"], check=True)

    def state(intent_id: str) -> str:
        answer = stack.key("acme")("GET", f"{trader.path}/{intent_id}").json()
        return str(answer["state"]["status"])

    deadline = time.monotonic() + 60
    waiting = set(trader.accepted)
    while waiting and time.monotonic() < deadline:
        waiting = {intent_id for intent_id in waiting if state(intent_id) != "FILLED"}
    assert waiting == set()
    assert len(trader.accepted) == len(set(trader.accepted)) > 20
    ledger = requests.get(stack.local["paper_broker_url"] + "/sim/ledger", timeout=10).text.splitlines()
    orders = [json.loads(line) for line in ledger]
    assert len({order["client_order_id"] for order in orders}) == len(orders)
    assert sum(order["symbol"] == "ROLL" for order in orders) == len(trader.accepted), trader.repeated
