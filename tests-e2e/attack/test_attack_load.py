"""Attacks by load and by crowds: what would make them pass without having tested anything is a finding itself."""

import socketserver
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import attack_flood
import attack_load
import attack_streams
from attack_crowd import Stream, Subscriber
from attack_fairness import judge_attack
from attack_findings import Findings
from attack_http import Answer
from attack_load import Attack
from attack_progress import Progress
from attack_tenants import Tenant


def test_an_attack_that_its_own_quota_ended_is_a_finding():
    findings = Findings()
    ended, served = Attack(("", 1), [], 20), Attack(("", 1), [], 20)
    ended._seen = [(100, "200", 60), (300, "429 rate_limited", 5_000)]
    served._seen = [(100, "200", 60), (300, "429 too_many_requests", 500)]

    judge_attack("verify", ended, 9.0, 40.0, findings)
    judge_attack("batches", served, 9.0, 40.0, findings)

    assert [finding.case for finding in findings.found] == ["verify"]


class Refusing(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while self.rfile.readline():
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def refusing() -> Iterator[tuple[str, int]]:
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address
        server.shutdown()


def test_an_attack_counts_what_it_was_answered(refusing: tuple[str, int]):
    findings, began = Findings(), time.monotonic()
    attack = Attack(refusing, [b"GET / HTTP/1.1\r\n\r\n"], 2)
    attack.start()
    time.sleep(1.0)  # while it sends
    attack.stop()

    judge_attack("verify", attack, began, time.monotonic(), findings)

    assert findings.counts["answers to verify while measuring"]["429"] > 0
    assert findings.rules() == ["too few of the attack's requests were accepted while measuring"]


def test_a_batch_that_is_pushed_back_is_told_from_one_that_is_accepted():
    def answered(body: bytes) -> str:
        http: Any = SimpleNamespace(exchange=lambda _: Answer(200, (), body))
        return attack_flood._whole(http, b"")

    pushed_back = b'{"results": [{"status": 503, "problem": {"code": "overloaded"}}]}'

    assert answered(pushed_back) == "200 overloaded" and answered(b'{"results": [{"status": 201}]}') == "200"


def test_what_an_attack_prepares_is_repeated_while_it_is_pushed_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attack_load, "RETRY_AFTER_S", 0)
    made, sent, codes = builder(), list[int](), iter(["overloaded", "overloaded", None, "control_rejected"])

    def call(_method: str, _path: str, _headers: Any, body: Any) -> Any:
        sent.append(len(body["commands"]))
        refused = {"status": 503, "problem": {"code": code}} if (code := next(codes)) else {"status": 201}
        return {"results": [refused, *[{"status": 201}] * (len(body["commands"]) - 1)]}

    made.call = call
    attack_load.accepted_batch(made, "account", "key", {})

    assert sent == [attack_load.BATCH, 1, 1]
    with pytest.raises(RuntimeError, match="control_rejected"):
        attack_load.accepted_batch(made, "account", "key", {})


class Refuser:
    """A crowd of which only so many streams are let in."""

    def __init__(self, most: int) -> None:
        self.left = most

    def open(self, subscribers: list[Subscriber]) -> list[Stream]:
        made = [Stream(opened=number < self.left) for number in range(len(subscribers))]
        self.left = max(0, self.left - len(subscribers))
        return made


def builder() -> Any:
    made = SimpleNamespace(answer=lambda *_: Answer(200, (), b""), call=lambda *_: {"key": "k", "id": "i"})
    made.identity = SimpleNamespace(user_token=lambda *_: "token")
    made.tenant = lambda *_, **__: Tenant(
        "loud", "id", "loud", "canary", "LOUD", frozenset(), {"admin": ""}, {}, {"paper": "account"}
    )
    return made


def test_fewer_streams_than_wanted_are_a_finding():
    findings = Findings()

    opened = attack_streams.fill(Refuser(100), builder(), 5_000, "streams", findings, Progress())

    assert len(opened) == 100 and findings.rules() == ["too few streams could be opened"]


def test_every_stream_has_a_token_of_its_own_and_half_of_them_are_over_grpc():
    made, tokens = builder(), iter(range(10_000))
    made.identity.user_token = lambda *_: f"token {next(tokens)}"
    [subscribers, *_] = attack_streams._subscribers(made, made.tenant(), 5_000)

    shown = {dict(subscriber.headers)["Authorization"] for subscriber in subscribers}
    transports = Counter(subscriber.transport for subscriber in subscribers)

    assert len(shown) == len(subscribers) and transports == {"http": 100, "grpc": 100}


def test_a_crowd_that_has_collapsed_is_a_finding(monkeypatch: pytest.MonkeyPatch):
    findings = Findings()
    monkeypatch.setattr(attack_streams, "_all_ended", lambda *_: 1.0)
    loud = [Stream(opened=True, ended_at=1.0), Stream(opened=True)]
    quiet = builder().tenant()

    attack_streams._revoked(Refuser(100), loud, builder(), quiet, "key", True, findings)

    assert findings.rules() == ["streams of the crowd ended by themselves"]
