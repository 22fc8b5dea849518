"""The parts of the attack: what would make them pass without having tested anything is a finding itself."""

import argparse
import asyncio
import importlib.util
import json
import random
import socketserver
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

sys.path.insert(0, str(Path(__file__).parent))
import attack_streams
from attack_callers import Caller
from attack_cells import Cell, Prepared
from attack_crowd import Stream, Subscriber
from attack_endpoints import _registered, agree
from attack_fairness import judge_attack
from attack_findings import Findings
from attack_fuzz import Outcome, judge_shares
from attack_http import Answer
from attack_load import Attack
from attack_matrix import FEWEST, Matrix
from attack_mischief import MISCHIEF, _coded
from attack_options import SIZES
from attack_progress import Progress
from attack_rules import PAGES, RULES
from attack_schemathesis import left_out
from attack_sockets import _Listener, together
from attack_targets import Target
from attack_tenants import Tenant
from attack_tokens import Truth, token

OWN = Tenant("own", "own-id", "own", "canary-own", "OWN", frozenset(), {}, {"paper": "key"}, {"paper": "account"})


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attack_runner", Path(__file__).with_name("run.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["attack_runner"] = module
    spec.loader.exec_module(module)
    return module


def rules(findings: Findings) -> list[str]:
    return [finding.rule for finding in findings.found]


def running(runner: ModuleType, folder: Path, **given: Any) -> Any:
    usual = {"size": "small", "seed": 7, "part": ["tokens"], "case": None, "report": None, "keep": False,
             "findings": folder / "findings.json"}  # fmt: skip
    named = argparse.Namespace(**{**usual, **given})
    return runner.Run(named, SIZES["small"], Progress(), Findings(only=named.case))


def test_a_case_that_nobody_knows_is_an_error(runner: ModuleType, tmp_path: Path):
    run = running(runner, tmp_path, case="nonsense")
    run.findings.chosen("another")

    assert run.conclude() == 2


def test_a_case_that_passes_is_none(runner: ModuleType, tmp_path: Path):
    run = running(runner, tmp_path, case="GET //metrics")
    run.findings.chosen("GET //metrics")

    assert run.conclude() == 0


def test_what_only_a_whole_part_shows_is_repeated_without_a_case():
    findings = Findings()
    findings.add("matrix", "a refused request changed something", None, "victim")
    findings.add("matrix", "another spelling of a path is served", "GET //metrics", "")

    commands = [line.strip() for line in findings.lines("run") if line.strip().startswith("run")]

    assert commands == ["run --part matrix", "run --part matrix --case 'GET //metrics'"]


def test_a_run_about_one_case_finds_nothing_else():
    findings = Findings(only="GET //metrics")
    findings.add("matrix", "another spelling of a path is served", "GET //docs", "")

    assert findings.found == [] and not findings.case_exists


def test_a_part_that_breaks_takes_nothing_from_the_others(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = running(runner, tmp_path)
    monkeypatch.setitem(runner.ATTACKS, "matrix", lambda *given: given[4].add("matrix", "found", "1", ""))
    monkeypatch.setitem(runner.ATTACKS, "fuzz", lambda *_: {}["missing"])
    run._play("matrix", None, None)
    run._play("fuzz", None, None)

    written = [(finding["part"], finding["rule"]) for finding in json.loads(run.given.findings.read_text())]

    assert written == [("matrix", "found"), ("fuzz", runner.BROKE)]


def test_progress_says_how_long_the_rest_takes():
    progress = Progress({"matrix": 100, "fuzz": 600, "tokens": 300}, part="fuzz")

    line = progress.line(250_000, 1_000_000, 500.0)

    assert line == "  fuzz: 250 000 of 1 000 000, 500 a second; about 25 min left, 30 min in all"


@pytest.fixture(scope="module")
def truth() -> Truth:
    numbers = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key().public_numbers()
    jwk = {"kty": "RSA", "e": "AQAB", "n": _coded(numbers.n.to_bytes(256, "big"))}
    head = _coded(json.dumps({"alg": "RS256", "kid": "0123456789abcdef"}).encode())
    dice = random.Random(7)
    good = tuple(
        f"{head}.{_coded(json.dumps({'sub': 'user', 'jti': dice.randbytes(16).hex()}).encode())}"
        f".{_coded(dice.randbytes(256))}"
        for _ in range(50)
    )
    return Truth(("", 1), ("", 1), "", "", good, (), jwk, 7)


def test_hardly_two_tokens_are_the_same(truth: Truth):
    made = [token(truth, number) for number in range(4_000)]
    kinds = Counter(kind for kind, _ in made)
    distinct = Counter(kind for kind, _ in set(made))

    assert kinds.keys() == MISCHIEF.keys()
    assert {kind: f"{distinct[kind]} of {kinds[kind]}" for kind in kinds if distinct[kind] < 0.97 * kinds[kind]} == {}


def test_schemathesis_deletes_neither_its_callers_nor_their_accounts():
    assert left_out("DELETE /v1/users/me") and left_out("DELETE /v1/accounts/{account_id}")
    assert not left_out("GET /v1/users/me")


def test_requests_that_wear_out_what_they_test_are_a_finding():
    spoiled, lost = Findings(), Findings()
    sent = Counter(dict.fromkeys(range(10), 5_000))
    kept = Outcome(Counter({"200": 20_000, "404": 30_000}), sent, Counter(dict.fromkeys(range(10), 2_000)))
    worn = Outcome(Counter({"200": 10_000, "400": 40_000}), sent, Counter({0: 3_000, 9: 1_000}))

    judge_shares(worn, spoiled)
    judge_shares(kept, lost)

    assert rules(spoiled) == ["the requests wear out what they test"]
    assert rules(lost) == ["most requests do not reach the operation"]


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
    assert rules(findings) == ["too few of the attack's requests were accepted while measuring"]


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

    assert len(opened) == 100 and rules(findings) == ["too few streams could be opened"]


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

    assert rules(findings) == ["streams of the crowd ended by themselves"]


def cell(listener: str = "web") -> Cell:
    rule = next(rule for rule in RULES if rule.listener == listener and rule not in PAGES)
    return Cell(rule, Caller("nobody", (), "none"), Target("own"), OWN, frozenset({401, 404}))


class Broken:
    def send(self, _request: Prepared) -> Answer:
        raise ValueError("not a length")

    def reconnect(self) -> None:
        pass


def matrix(findings: Findings) -> Matrix:
    scenery: Any = SimpleNamespace(victim=SimpleNamespace(marks=()))
    none: Any = None
    return Matrix(none, none, scenery, [], findings, total=2)


def test_a_cell_that_breaks_is_a_finding_and_the_next_is_played():
    findings = Findings()
    fresh: Any = SimpleNamespace(prepared=lambda _: Prepared("web", "GET", "/", ()))
    broken: Any = Broken()

    matrix(findings)._group([cell(), cell()], broken, fresh)

    assert rules(findings) == ["a cell could not be played"] * 2


def test_cells_that_were_not_played_are_a_finding():
    findings = Findings()
    findings.count("cells", 1)

    matrix(findings).conclude(SIZES["full"])

    assert rules(findings) == ["cells were not played", "the matrix is too small"]
    assert FEWEST == 7_000


def test_a_404_that_tells_what_exists_is_a_finding_over_grpc_too():
    findings, unknown = Findings(), dict[tuple[str, str, bool], str]()
    for said in (b"No such account.", b"Not yours."):
        matrix(findings)._compare_with_unknown(cell("grpc"), Answer(404, (), said), unknown)

    assert rules(findings) == ["a 404 tells what exists from what does not"]


def test_a_raw_request_that_breaks_is_a_finding():
    findings = Findings()

    def broken() -> None:
        raise OSError("no more sockets")

    together([("web 65537", broken), ("web pipelined", lambda: None)], findings)

    assert [(finding.rule, finding.case) for finding in findings.found] == [
        ("a raw request could not be played", "web 65537")
    ]


def test_every_raw_request_has_a_name_to_repeat_it_by():
    names = [name for name, _ in _Listener("web", ("", 1), OWN, Findings()).jobs((), 0.0)]

    assert {"web 65537", "web pipelined", "web half-closed", "web TE and CL"} <= set(names)
    assert len(names) == len(set(names))


ENVIRONMENT = {"DATABASE_URL": "postgresql://a:b@127.0.0.1/a", "REDIS_URL": "redis://127.0.0.1", "CURSOR_KEY": "k" * 32}


@pytest.mark.parametrize(("setting", "unruled"), [({}, 0), ({"REFLECTION": "true"}, 1)])
def test_a_grpc_method_that_is_served_and_has_no_rule_is_a_finding(setting: dict[str, str], unruled: int):
    platform: Any = SimpleNamespace(environment_of=lambda _: {**ENVIRONMENT, **setting})
    served = {("grpc", "gRPC", method) for method in asyncio.run(_registered(platform))}
    others = {(rule.listener, rule.method, rule.path) for rule in RULES if rule.listener != "grpc"}
    documented = {(rule.listener, rule.method, rule.path) for rule in RULES if rule not in PAGES}
    findings = Findings()

    agree(served | others, documented, findings)

    assert rules(findings).count("an endpoint has no rule in attack_rules") == unruled
    assert rules(findings).count("a rule is about an endpoint that is not served") == 0
