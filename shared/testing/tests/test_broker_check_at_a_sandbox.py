"""`tip broker check --sandbox` as a process: it trades with a credential, tells nobody of it, and cleans up."""

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tip_brokers import BrokerSettings, find
from tip_testing.broker_simulators.paper import SYMBOL, paper_broker
from tip_testing.waiting import eventually

from .checking import PLUGIN, SECRET, TIP, body, check, results

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[dict[str, str]]:
    """The paper broker in the part of a broker's sandbox."""
    with paper_broker() as address:
        yield {**SECRET, "PAPER_BROKER_URL": address}


def open_orders(address: str, key_id: str, secret_key: str) -> list[Any]:
    account = find("paper").connect("paper", BrokerSettings({"PAPER_BROKER_URL": address}))
    return list(account.account({"key_id": key_id, "secret_key": secret_key}).open_orders())


def interrupted(process: "subprocess.Popen[str]") -> str:
    """What it says at the end. Like a person, press Ctrl-C again where once was not enough."""
    while True:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=15)[1]


def test_a_report_never_quotes_a_credential(sandbox: dict[str, str]) -> None:
    done = check("hostile:leaky", "--sandbox", "--symbol", SYMBOL, "--fills", "--json", **sandbox)

    assert done.returncode == 1
    assert "refused with" in done.stdout and "***" in done.stdout
    assert not [value for value in SECRET.values() if value in done.stdout + done.stderr]


def test_nor_what_is_said_before_a_fact_is_run(sandbox: dict[str, str]) -> None:
    done = check("hostile:leakyatlogin", "--sandbox", "--symbol", SYMBOL, **sandbox)

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("tip: the broker cannot be reached: no account for ") and "***" in done.stderr
    assert not [value for value in SECRET.values() if value in done.stderr]


def test_nor_a_part_of_one_where_a_message_is_cut(sandbox: dict[str, str]) -> None:
    words = ("hostile:leakyatlength", "--sandbox", "--symbol", SYMBOL, "--fills", "--claim", "protocol")

    done = check(*words, **sandbox)

    assert done.returncode == 1 and "xxx" in done.stdout
    assert SECRET["TIP_BROKER_SECRET_KEY"][:5] not in done.stdout.partition("xxx")[2]


def test_at_a_sandbox_what_needs_a_simulator_is_skipped_with_its_reason(sandbox: dict[str, str]) -> None:
    done = check("paper", "--sandbox", "--symbol", SYMBOL, "--json", **sandbox)

    assert done.returncode == 0, done.stdout + done.stderr
    found = results(done)
    assert found["executions"] == "not checked" and found["bounds"] == "not checked"
    assert {name for name, result in found.items() if result == "kept"} >= {
        "streams", "client_ids", "kinds", "replacement", "quotes", "fractions", "routing", "protocol",
    }  # fmt: skip
    reasons = {fact["fact"]: fact["detail"] for claim in body(done)["claims"] for fact in claim["facts"]}
    assert reasons["positions follow fills"] == "needs a market order to fill now: --fills"
    assert reasons["a fill after a cancel is reported"] == "needs a fault that only a simulator has"


def test_where_market_orders_fill_more_is_checked_and_nothing_stays_open(sandbox: dict[str, str], tmp_path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({"key_id": "another-sandbox-key", "secret_key": "s"}))
    file.chmod(stat.S_IRUSR)
    words = ("paper", "--sandbox", "--credentials", str(file), "--symbol", SYMBOL, "--fills", "--json")

    done = check(*words, PAPER_BROKER_URL=sandbox["PAPER_BROKER_URL"])

    assert done.returncode == 0, done.stdout + done.stderr
    assert results(done)["executions"] == "kept"
    assert open_orders(sandbox["PAPER_BROKER_URL"], "another-sandbox-key", "s") == []


def test_what_is_open_is_canceled_when_a_check_is_interrupted(sandbox: dict[str, str]) -> None:
    given = {**os.environ, "PYTHONPATH": str(PLUGIN), **sandbox, "TIP_BROKER_KEY_ID": "key-of-who-interrupts"}
    words = [TIP, "broker", "check", "hostile:takesitstime", "--sandbox", "--symbol", SYMBOL]
    pipe = subprocess.PIPE

    def shown() -> list[Any]:
        return open_orders(sandbox["PAPER_BROKER_URL"], "key-of-who-interrupts", SECRET["TIP_BROKER_SECRET_KEY"])

    with subprocess.Popen(words, env=given, start_new_session=True, stdout=pipe, stderr=pipe, text=True) as process:
        eventually(shown)
        said = interrupted(process)

    assert process.returncode == 3 and "the kit did not run to its end" in said, said
    assert shown() == []


def test_a_report_is_kept_when_what_is_open_cannot_be_canceled(sandbox: dict[str, str]) -> None:
    words = ("hostile:failsattheend", "--sandbox", "--symbol", SYMBOL, "--claim", "fractions")

    done = check(*words, **sandbox | {"TIP_BROKER_KEY_ID": "key-of-who-fails"})

    assert done.returncode == 0 and "kept: fractions" in done.stdout, done.stderr
    left = open_orders(sandbox["PAPER_BROKER_URL"], "key-of-who-fails", SECRET["TIP_BROKER_SECRET_KEY"])
    assert len(left) == 1 and left[0].client_order_id in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [("onlymarketorders", ()), ("withoutprices", ("--price", "1")), ("honest", ("--price", "1"))],
)
def test_without_fills_nothing_is_bought(name: str, words: tuple[str, ...], sandbox: dict[str, str]) -> None:
    key_id = f"key-of-{name}"

    done = check(f"hostile:{name}", "--sandbox", "--symbol", SYMBOL, *words, **sandbox | {"TIP_BROKER_KEY_ID": key_id})

    assert done.returncode == 0, done.stdout + done.stderr
    account = find("paper").connect("paper", BrokerSettings(sandbox))
    assert account.account({"key_id": key_id, "secret_key": SECRET["TIP_BROKER_SECRET_KEY"]}).positions() == []


def test_a_price_above_the_market_is_refused(sandbox: dict[str, str]) -> None:
    done = check("paper", "--sandbox", "--symbol", SYMBOL, "--price", "10", **sandbox)

    assert done.returncode == 2 and "--price is not below the market" in done.stderr
