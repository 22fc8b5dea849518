"""`python -m tip_testing.broker_check NAME`: 0 all kept, 1 claimed and not kept, 2 wrong usage, 3 unreachable."""

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from decimal import Decimal, InvalidOperation
from pathlib import Path

from tip_brokers import BadPlugin, BrokerDescription, Capabilities, UnknownBroker, find, installed
from tip_testing.broker_check.credentials import read_secret
from tip_testing.broker_check.errors import KEPT, NOT_KEPT, UNREACHABLE, CannotCheck
from tip_testing.broker_check.markets import CheckedMarket, SandboxTrade, at_sandbox, at_simulator
from tip_testing.broker_check.offline import forbid_connections_beyond_loopback
from tip_testing.broker_check.plugin import CheckPlugin, ReasonToSkip, run_kit
from tip_testing.broker_check.report import Report, as_json, as_text, make_report
from tip_testing.broker_check.selection import EVERY_ADAPTER, ORDER, reason_to_skip_at_sandbox


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    logging.basicConfig(handlers=[logging.NullHandler()])  # the report is all that is said
    home = os.environ["TIP_HOME"] = tempfile.mkdtemp(prefix="tip-home-")
    try:
        report, is_reachable = check(given)
    except CannotCheck as problem:
        sys.stderr.write(f"tip: {problem}\n")
        return problem.code
    except Exception as problem:  # noqa: BLE001 - an adapter may raise anything, with a secret in its message
        sys.stderr.write(f"tip: the adapter failed before a fact was checked: {type(problem).__name__}\n")
        return UNREACHABLE
    finally:
        shutil.rmtree(home, ignore_errors=True)
    sys.stdout.write((as_json if given.json else as_text)(report) + "\n")
    if report.not_kept and not is_reachable:
        sys.stderr.write("tip: the broker cannot be reached any more: what is not kept may be for that\n")
        return UNREACHABLE
    return NOT_KEPT if report.not_kept else KEPT


def check(given: argparse.Namespace) -> tuple[Report, bool]:
    """The report, and whether the broker can still be reached."""
    broker = _described(given.name)
    with _market(broker, given) as market:
        plugin = CheckPlugin(market, _reason_to_skip(given, market.can), given.claim)
        facts = run_kit(plugin)
        place = "sandbox" if given.sandbox else "simulator"
        return make_report(broker, place, facts, given.claim), _answers(market)


def _described(name: str) -> BrokerDescription:
    try:
        return find(name)
    except UnknownBroker:
        raise CannotCheck(f"no broker {name} is installed, only {', '.join(installed())}") from None
    except BadPlugin as problem:
        raise CannotCheck(f"a plug-in cannot be used: {problem}") from None


def _market(broker: BrokerDescription, given: argparse.Namespace) -> AbstractContextManager[CheckedMarket]:
    if not given.sandbox:
        forbid_connections_beyond_loopback()
        return at_simulator(broker)
    if not given.symbol:
        raise CannotCheck("a sandbox needs --symbol: what is traded there")
    trade = SandboxTrade(given.symbol, given.quantity, given.price)
    return at_sandbox(broker, read_secret(broker, given.credentials, os.environ), trade, os.environ)


def _reason_to_skip(given: argparse.Namespace, can: Capabilities) -> ReasonToSkip:
    if not given.sandbox:
        return lambda _fact, _claim, _kind: None
    return lambda fact, claim, kind: reason_to_skip_at_sandbox(fact, claim, kind, can, given.fills)


def _answers(market: CheckedMarket) -> bool:
    try:
        return bool(market.broker.account_id())
    except Exception:  # noqa: BLE001 - whatever it is, it does not answer
        return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tip broker check")
    parser.add_argument("name")
    parser.add_argument("--sandbox", action="store_true")
    parser.add_argument("--credentials", type=Path)
    parser.add_argument("--symbol")
    parser.add_argument("--quantity", type=_amount, default=Decimal(1))
    parser.add_argument("--price", type=_amount)
    parser.add_argument("--fills", action="store_true")
    parser.add_argument("--claim", action="append", default=[], choices=(*ORDER, *EVERY_ADAPTER))
    parser.add_argument("--json", action="store_true")
    return parser


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not amount.is_finite() or amount <= 0:
        raise argparse.ArgumentTypeError("it must be above zero")
    return amount


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
