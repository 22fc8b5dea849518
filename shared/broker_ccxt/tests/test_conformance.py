"""`tip broker check`, by the unmodified library against an exchange on loopback."""

import subprocess
import sys
from pathlib import Path

import pytest

TIP = Path(sys.executable).with_name("tip")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["ccxt:binance", "ccxt:kraken"])
def test_an_exchange_keeps_all_that_it_claims(name: str) -> None:
    done = subprocess.run([TIP, "broker", "check", name], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "kept: client_ids (echo)" in done.stdout and "not claimed: replacement" in done.stdout
    assert done.stdout.endswith("Claimed and not kept: nothing.\n")


@pytest.mark.timeout(400)
def test_an_exchange_that_nothing_proves_keeps_what_little_it_claims() -> None:
    done = subprocess.run([TIP, "broker", "check", "ccxt:okx"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    facts = ("a filled order shows its quantity and price", "a cancel ends an open order", "positions follow fills")
    for fact in facts:
        assert f"  ok    {fact}\n" in done.stdout
    assert done.stdout.endswith("Claimed and not kept: nothing.\n")
