"""The parts of the attack: what would make them pass without having tested anything is a finding itself."""

import argparse
import importlib.util
import json
import random
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

sys.path.insert(0, str(Path(__file__).parent))
from attack_findings import Findings
from attack_fuzz import Outcome, judge_shares
from attack_mischief import MISCHIEF, _coded
from attack_options import SIZES
from attack_progress import Progress
from attack_schemathesis import left_out
from attack_tokens import Truth, token


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attack_runner", Path(__file__).with_name("run.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["attack_runner"] = module
    spec.loader.exec_module(module)
    return module


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


def test_a_report_keeps_the_sections_of_parts_that_did_not_run(runner: ModuleType, tmp_path: Path):
    document = tmp_path / "security.md"
    document.write_text("head\n<!-- report -->\n\n### fuzz, 2026-01-01\n\nold fuzz\n\n<!-- /report -->\nfoot\n")
    tokens, matrix = running(runner, tmp_path, report=document), running(runner, tmp_path, report=document)

    tokens._report("tokens", {"forged tokens": 100_000}, 9.0)
    matrix._report("matrix", {}, 1.0)

    written = document.read_text()
    headings = [line.split(",")[0] for line in written.splitlines() if line.startswith("###")]
    assert headings == ["### matrix", "### fuzz", "### tokens"]
    assert "old fuzz" in written and "| forged tokens | 100 000 |" in written and written.endswith("foot\n")


def test_a_part_that_breaks_has_a_finding_in_its_section(runner: ModuleType, tmp_path: Path):
    document = tmp_path / "security.md"
    document.write_text("<!-- report -->\n<!-- /report -->\n")
    run = running(runner, tmp_path, report=document)

    run._broke("tokens")
    run._report("tokens", {}, 0.0)

    assert "| verdict | 1 findings |" in document.read_text()


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
    platform = SimpleNamespace(database_connections=lambda: (301, 400))
    run._play("matrix", platform, None)
    run._play("fuzz", platform, None)

    written = [(finding["part"], finding["rule"]) for finding in json.loads(run.given.findings.read_text())]

    too_many = "the processes hold almost all connections that the database allows"
    assert written == [("matrix", "found"), ("matrix", too_many), ("fuzz", runner.BROKE)]


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

    assert spoiled.rules() == ["the requests wear out what they test"]
    assert lost.rules() == ["most requests do not reach the operation"]
