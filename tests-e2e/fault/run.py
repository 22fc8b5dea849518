"""Load, kills, pauses, flushes, restarts, a bad line to the broker; then the judge.

    python tests-e2e/fault/run.py --size ten-minutes
    python tests-e2e/fault/run.py --seconds 60 --kills 20 --seed 11

Exit code 0 means that nothing was found. Whatever is found is printed with the command that reproduces it.
"""

import argparse
import random
import shutil
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg2
import requests

sys.path.insert(0, str(Path(__file__).parent))
from fault_brokers import Ledger
from fault_check_orders import WAITING
from fault_checker import Verdict, judge
from fault_client import Client
from fault_evidence import Evidence, read_ledger, read_requests
from fault_journal import Journals
from fault_line import LONGEST_LATE, Line
from fault_load import Load
from fault_operators import Operators
from fault_options import Size, arguments, command
from fault_report import report
from fault_schedule import Plan, Schedule
from fault_stack import Stack
from fault_start import stack
from fault_stories import ASK, BID, QUICK, Accounts
from fault_subscribers import Subscribers

PROGRESS_SECONDS = 10.0
BROKER_FAULTS = {
    "timeout_after_accept": 0.01,
    "error_after_accept": 0.005,
    "slow": 0.003,
    "cut_before_accept": 0.005,
    "unavailable": 0.005,
    "rate_limited": 0.005,
    "reads_unavailable": 0.005,
    "duplicate_event": 0.02,
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Run:
    def __init__(self, given: argparse.Namespace, size: Size, on: Stack, line: Line) -> None:
        self.given, self.size, self.on, self.line = given, size, on, line
        self.journals = Journals(on.directory / "journals")
        self.dice = random.Random(given.seed)
        self.chance = {} if given.calm else BROKER_FAULTS
        key = Client(on.base_url, {"x-api-key": on.api_key}, self.journals, random.Random(given.seed))
        token = {"Authorization": f"Bearer {on.organization.tokens['admin']}"}
        admin = Client(on.base_url, token, self.journals, random.Random(given.seed))
        ids = [str(account) for account in on.accounts]
        self.accounts = Accounts([*ids, *on.brokers], on.brokers)
        self.load = Load(
            key,
            self.accounts,
            wanted=size.intents,
            seconds=size.seconds,
            traders=size.traders,
            seed=given.seed,
            simple=size.simple,
            backlog=lambda: _state(on.admin_url)["waiting"],
        )
        self.operators = Operators(key, admin, ids[0::4], ids[1::4], self.accounts, random.Random(given.seed + 1))
        self.subscribers = Subscribers(on.directory / "streams", on.stream_target, on.events_url, on.api_key, self.dice)
        plan = Plan(size.kills, size.pauses, size.flushes, size.restarts)
        self.schedule = Schedule(on, plan, self.journals.faults, random.Random(given.seed + 2))

    def broker_faults(self, faults: dict[str, Any]) -> None:
        """The broker forgets them when it is killed, so this is repeated."""
        more = {
            "hang_seconds": 1.0,
            "slow_seconds": 0.5,
            "accept_duplicate_client_order_ids": self.given.duplicates_accepted,
        }
        with suppress(requests.RequestException):
            self.on.at_broker("PUT", "/faults", json=faults | more, timeout=2)

    def begin(self) -> None:
        self.on.at_broker("PUT", f"/quotes/{QUICK}", json={"bid": BID, "ask": ASK}).raise_for_status()
        for number, account in enumerate((*self.on.accounts, *self.on.brokers)):
            self.subscribers.add(str(account), "grpc")
            if number % 3 == 0:
                self.subscribers.add(str(account), "sse")
        self.broker_faults(self.chance)
        self.line.command("off" if self.given.calm else "on")
        if self.on.others:
            self.on.others.disturb(is_on=not self.given.calm)
        self.load.start()
        self.operators.start()

    def strike(self) -> None:
        printed = repeated = time.monotonic()
        while self.load.running():
            self.schedule.step(self.load.progress)
            if time.monotonic() - repeated > 2:
                repeated = time.monotonic()
                self.broker_faults(self.chance)
            if time.monotonic() - printed > PROGRESS_SECONDS:
                printed = time.monotonic()
                self.progress()
            time.sleep(0.05)
        self.schedule.finish()

    def progress(self) -> None:
        self.journals.flush()
        seconds = time.monotonic() - self.load.began
        done = ", ".join(f"{count} {name}" for name, count in self.schedule.done.items())
        frozen = f", paused: {', '.join(sorted(self.on.freezer.kinds()))}" if self.on.freezer.kinds() else ""
        say(f"  {seconds:4.0f} s {100 * self.load.progress:3.0f} %: {self.load.accepted} intents, "
            f"{self.journals.answers.lines} answers, {done}{frozen}")  # fmt: skip

    def settle(self) -> None:
        """No more faults; until nothing moves any more, or the time for it is over."""
        self.on.revive_well()
        self.operators.finish()
        self.broker_faults({})
        self.line.command("off")
        if self.on.others:
            self.on.others.disturb(is_on=False)
        began = time.monotonic()
        deadline, last, since = began + self.size.settle, None, began
        printed = time.monotonic()
        while time.monotonic() < deadline:
            state = _state(self.on.admin_url)
            if state != last:
                last, since = state, time.monotonic()
            quiet = time.monotonic() - max(since, began + LONGEST_LATE)
            if quiet > QUIET_SECONDS[state["waiting"] == 0]:
                break
            if time.monotonic() - printed > PROGRESS_SECONDS:
                printed = time.monotonic()
                say(f"  settling: {state['waiting']} unsettled, log at {state['entries']}")
            time.sleep(0.5)
            self.on.revive(doom=0.0)
        heads = _heads(self.on.admin_url)
        self.subscribers.wait_for(heads, 30)
        self.subscribers.stop.set()


QUIET_SECONDS = {True: 5.0, False: 45.0}
"""How long nothing may have moved: shorter when nothing is known to be unsettled."""
_STATE = """
    SELECT (SELECT count(*) FROM intents.intent
            WHERE open_actions > 0 AND coalesce(reason_code, '') NOT IN %s) AS waiting,
           (SELECT coalesce(sum(last_sequence), 0) FROM intents.account_head) AS entries,
           (SELECT count(*) FROM accounts.outbox WHERE status IN ('pending', 'processing')) AS outbox
"""


def _state(admin_url: str) -> dict[str, int]:
    connection = psycopg2.connect(admin_url, connect_timeout=5)
    with connection, connection.cursor() as cursor:
        cursor.execute(_STATE, (tuple(WAITING),))
        row = cursor.fetchone() or (0, 0, 0)
    connection.close()
    return {"waiting": int(row[0]), "entries": int(row[1]), "outbox": int(row[2])}


def _heads(admin_url: str) -> dict[str, int]:
    connection = psycopg2.connect(admin_url)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT account_id::text, last_sequence FROM intents.account_head")
        found = dict(cursor.fetchall())
    connection.close()
    return found


def _ledgers(on: Stack) -> Ledger:
    orders, positions = read_ledger(on.at_broker)
    if on.others is None:
        return orders, positions
    more_orders, more_positions = on.others.ledger()
    return orders | more_orders, positions | more_positions


def main() -> int:
    given, size = arguments()
    started = time.monotonic()
    say(f"chaos: {command(given, size)}")
    with ExitStack() as opened:
        line = Line(given.seed)
        opened.callback(line.close)
        on = opened.enter_context(
            stack(
                accounts=size.accounts,
                executors=given.executors,
                quick=True,
                seed=given.seed,
                in_front_of_broker=line.open,
                thirds=given.thirds,
                RECONCILE_SECONDS=str(size.reconcile),
                STATISTICS_EVERY_SECONDS=str(2 * size.reconcile),
            )
        )
        say(f"  the platform is up after {time.monotonic() - started:.0f} s, in {on.directory}")
        run = Run(given, size, on, line)
        run.begin()
        run.strike()
        loaded = time.monotonic() - run.load.began
        run.settle()
        settled = time.monotonic() - run.load.began
        line.close()
        orders, positions = _ledgers(on)
        evidence = Evidence(on.base_url, on.api_key, on.admin_url, run.journals, orders, positions,
                            read_requests(line.journal), given.duplicates_accepted)  # fmt: skip
        verdict = judge(evidence, run.subscribers.all)
        for error in (*run.load.errors, *run.operators.errors):
            verdict.findings.add("a client gave up", repr(error)[:500])
        verdict.facts |= {
            "killed": dict(sorted(on.kills.items())),
            "faults": run.schedule.done,
            "requests repeated by clients": run.load.repeated,
            "streams opened": sum(subscriber.streams for subscriber in run.subscribers.all),
            "seconds of load": round(loaded, 1),
            "seconds until settled": round(settled, 1),
            "seconds in all": round(time.monotonic() - started, 1),
        }
        text = report(verdict, evidence, command(given, size), given.seed)
        verdict.write(on.directory / "findings.txt")
    return conclude(given, size, on, verdict, text, line)


def conclude(given: argparse.Namespace, size: Size, on: Stack, verdict: Verdict, text: str, line: Line) -> int:
    say(str(verdict))
    (on.directory / "report.md").write_text(text)
    if given.report:
        paste(given.report, text)
    line.move_to(on.directory)
    if verdict.good and not given.keep:
        shutil.rmtree(on.directory, ignore_errors=True)
    else:
        say(f"  logs, journals and findings.txt are in {on.directory}\n  reproduce: {command(given, size)}")
    return 0 if verdict.good else 1


def paste(path: Path, text: str) -> None:
    """Between the document's two marks."""
    begin, end = "<!-- report -->", "<!-- /report -->"
    before, _, rest = path.read_text().partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
