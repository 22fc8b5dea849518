"""`tip broker check` as a process: honest brokers pass, and whoever claims what it does not keep is named for it."""

from dataclasses import fields
from pathlib import Path

import pytest

import tip_testing
from tip_brokers import Capabilities
from tip_testing.broker_check.selection import CLAIMS, EVERY_ADAPTER, FILLING, ONLY_SIMULATED, ORDER, RESTING
from tip_testing.broker_conformance import Conformance
from tip_testing.broker_conformance.orders import PROTOCOL
from tip_testing.broker_simulators.paper import SYMBOL

from .checking import PLUGIN, SECRET, body, check, results

pytestmark = pytest.mark.timeout(400)


def test_the_paper_broker_keeps_all_that_it_claims() -> None:
    done = check("paper")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "kept: replacement (native)\n  ok    a replacement is a new order under its own id" in done.stdout
    assert "skip  a direct order goes where the account says: the broker does not show where" in done.stdout
    assert "not claimed: calls_per_minute" in done.stdout
    assert done.stdout.endswith("Claimed and not kept: nothing.\n")


HOSTILE = [
    ("streamthatends", "streams"),
    ("streamthatissilent", "streams"),
    ("takesanidtwice", "client_ids"),
    ("answersanidasanother", "client_ids"),
    ("saysechointheadapter", "client_ids"),
    ("findsnothing", "client_ids"),
    ("sendsstopsasmarket", "kinds"),
    ("dropslimits", "kinds"),
    ("sendsimmediateasday", "kinds"),
    ("refusesstoplimits", "kinds"),
    ("claimsanunknownkind", "kinds"),
    ("sendstrailingstopsasstops", "kinds"),
    ("takesthenotionalforaquantity", "notional_orders"),
    ("forgetsextendedhours", "extended_hours"),
    ("refusesreplacements", "replacement"),
    ("replacesnothing", "replacement"),
    ("hasnoprices", "quotes"),
    ("priceswithoutage", "quotes"),
    ("listsnofills", "executions"),
    ("renamesfills", "executions"),
    ("cutsfractions", "fractions"),
    ("reservespositions", "shared_exits"),
    ("sendsexitsalone", "exit_pairs"),
    ("hideslegs", "exit_pairs"),
    ("refusesdirect", "routing"),
    ("ignoresdirect", "routing"),
    ("othersymbols", "symbols"),
    ("cancelsnothing", "protocol"),
    ("sendswithoutcheck", "protocol"),
    ("takesbrokenforabsent", "bounds"),
]


@pytest.mark.parametrize(("name", "claim"), HOSTILE)
def test_what_is_claimed_and_not_kept_is_named(name: str, claim: str) -> None:
    done = check(f"hostile:{name}", "--claim", claim, "--json")

    assert (done.returncode, body(done)["not_kept"]) == (1, [claim]), done.stderr


def test_the_same_broker_keeps_it_without_the_lie() -> None:
    claims = sorted({claim for _, claim in HOSTILE} - {"protocol", "bounds", "shared_exits"})

    done = check("hostile:honest", *(f"--claim={claim}" for claim in claims), "--json")

    assert done.returncode == 0, done.stdout
    assert results(done) == dict.fromkeys(results(done), "kept")


def test_a_lie_about_one_claim_is_found_by_the_whole_check() -> None:
    done = check("hostile:cutsfractions")

    assert done.returncode == 1
    assert "NOT KEPT: fractions (yes)\n  FAIL  a fraction is sent as it is: " in done.stdout
    assert done.stdout.endswith("Claimed and not kept: fractions.\n")


def test_a_position_that_is_reserved_is_noticed_whatever_was_bought_before() -> None:
    done = check("hostile:reservespositions", "--claim=executions", "--claim=shared_exits", "--json")

    assert results(done) == {"executions": "kept", "shared_exits": "not kept"}


def test_a_failure_says_what_became_of_the_order() -> None:
    done = check("hostile:sendsimmediateasday", "--claim", "kinds")

    assert "(Limit IOC): AssertionError: the order is WORKING, not CANCELED or EXPIRED\n" in done.stdout


def test_a_check_at_the_simulator_connects_to_nobody_else() -> None:
    done = check("hostile:stray", "--claim", "protocol")

    assert done.returncode == 1
    assert "offline: a connection to 192.0.2.1 is not allowed" in done.stdout


def test_a_check_that_did_not_run_to_its_end_passes_nothing() -> None:
    done = check("hostile:interrupts", "--claim", "fractions")

    assert (done.returncode, done.stdout) == (3, "")
    assert "the kit did not run to its end" in done.stderr


def test_only_the_kit_and_no_module_of_the_current_folder_is_run(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("raise SystemExit('a module of the current folder')")

    assert "no broker acme is installed" in check("acme", folder=tmp_path).stderr


def test_no_plug_in_of_the_callers_tests_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("raise SystemExit('a conftest above the kit')")
    (tmp_path / "of_the_caller.py").write_text("raise SystemExit('a plug-in of the caller')")
    (tmp_path / "tip_testing").symlink_to(Path(tip_testing.__file__).parent)
    path = f"{tmp_path}:{PLUGIN}"

    done = check("hostile:honest", "--claim", "fractions", PYTHONPATH=path, PYTEST_PLUGINS="of_the_caller")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "claim"),
    [("takesfractionsfortheday", "fractions"), ("showspositionslate", "protocol"), ("onlymarketorders", "replacement")],
)
def test_what_a_broker_may_do_is_not_held_against_it(name: str, claim: str) -> None:
    done = check(f"hostile:{name}", "--claim", claim)

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_needs_a_claim_is_left_out_without_it() -> None:
    claims = ("replacement", "client_ids", "protocol")

    done = check("hostile:replacesandfindsnothing", *(f"--claim={claim}" for claim in claims), "--json")

    assert done.returncode == 0, done.stdout
    assert results(done) == {"replacement": "not claimed", "client_ids": "not claimed", "protocol": "kept"}


FACTS = {name: getattr(Conformance, name) for name in dir(Conformance) if name.startswith("test_")}


def test_a_sandbox_runs_only_facts_that_exist() -> None:
    assert FACTS.keys() >= RESTING | FILLING | ONLY_SIMULATED.keys()


def test_every_fact_proves_a_claim_that_is_reported() -> None:
    proved = {getattr(fact, "proves", PROTOCOL) for fact in FACTS.values()}

    assert proved == {*ORDER, *EVERY_ADAPTER}
    assert {*CLAIMS} == {field.name for field in fields(Capabilities)}


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (["acme"], {}, "no broker acme is installed"),
        (["ccxt:binanceus"], {}, "ccxt:binanceus has no simulator here"),
        (["ccxt:kraken", "--sandbox", "--symbol", "BTC/USD"], {"TIP_BROKER_APIKEY": "k", "TIP_BROKER_SECRET": "s"},
         "ccxt:kraken has no sandbox"),
        (["alpaca", "--sandbox", "--symbol", "AAPL"], {}, "key_id is missing; secret_key is missing"),
        (["alpaca", "--sandbox"], SECRET, "a sandbox needs --symbol"),
        (["alpaca", "--sandbox", "--symbol", "AAPL"], {**SECRET, "ALPACA_PAPER_URL": "https://api.alpaca.markets"},
         "are one address: it may be a live one"),
        (["paper", "--sandbox", "--symbol", SYMBOL, "--price", "0"], SECRET, "it must be above zero"),
        (["paper", "--claim", "wisdom"], {}, "invalid choice: 'wisdom'"),
        (["paper", "--quantity", "-1"], {}, "it must be above zero"),
    ],
)  # fmt: skip
def test_wrong_usage_has_an_exit_code_of_its_own(words: list[str], environment: dict[str, str], said: str) -> None:
    done = check(*words, **environment)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not [value for value in environment.values() if value in SECRET.values() and value in done.stderr]


def test_a_credential_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text("{}")
    file.chmod(0o644)

    done = check("alpaca", "--sandbox", "--symbol", "AAPL", "--credentials", str(file))

    assert done.returncode == 2 and f"others may read {file}" in done.stderr


def test_a_broker_that_cannot_be_reached_has_an_exit_code_of_its_own() -> None:
    done = check("paper", "--sandbox", "--symbol", SYMBOL, **SECRET, PAPER_BROKER_URL="http://127.0.0.1:1")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("tip: the broker cannot be reached: ")
