"""Statements and the outbox's health by `tip`, on a whole platform."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

from tip_testing.waiting import eventually

WAIT = ("--wait", "--timeout", "90")


@pytest.fixture
def traded(tip: TipCaller, symbol: str) -> TipCaller:
    """Its log has entries, and its head is signed."""
    tip.done("buy", symbol, "1", *WAIT)
    eventually(lambda: tip("statement").exit_code == 0)
    return tip


def test_a_statement_is_saved_and_verified(traded: TipCaller, whole_platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "statement.jsonl"

    saved = traded.json("statement", "-o", str(file))

    lines = file.read_bytes().splitlines()
    assert saved == {"file": str(file), "bytes": file.stat().st_size, "entries": len(lines) - 2}
    keys = f"{whole_platform.local['base_url']}/.well-known/log-jwks.json"
    assert f"{saved['entries']} entries of account " in traded.done("verify", str(file), "--keys", keys)
    other = traded.done("statement", "--from", "1h", "-o", str(tmp_path / "other.jsonl"))
    assert f"tip verify {tmp_path / 'other.jsonl'} --keys {keys}" in other


def test_a_statement_goes_to_standard_output(traded: TipCaller) -> None:
    first, *_, last = traded.done("statement").splitlines()

    assert json.loads(first)["statement"] == 1 and "signed_head" in json.loads(last)


def test_a_statement_writes_over_nothing(traded: TipCaller, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    file.write_text("mine")

    assert traded("statement", "-o", str(file)).exit_code == 2 and file.read_text() == "mine"
    assert traded("statement", "-o", str(tmp_path / "none" / "x")).exit_code == 2


def test_what_the_platform_refuses_makes_no_file(tip: TipCaller, tmp_path: Path) -> None:
    refused = tip("statement", "-o", str(tmp_path / "none"), "--account", str(uuid4()))

    assert refused.exit_code == 1 and "not_found" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_health_of_the_outbox_is_for_operators(admin: TipCaller, tip: TipCaller) -> None:
    lines = admin.done("outbox", "health").splitlines()

    assert " completed, " in lines[0] and lines[1].split()[:3] == ["STATUS", "EVENT", "TYPE"]
    assert admin.json("outbox", "health")["completed"] > 0
    assert tip("outbox", "health").exit_code == 1
