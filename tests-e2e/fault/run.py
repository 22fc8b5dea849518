"""Load, kills, flushes, restarts, time-outs after accept; then the judge.

    python tests-e2e/fault/run.py --intents 100000

Exit code 0 means: nothing answered was lost, no command became two orders, no intent's orders were out of order.
"""

import argparse
import itertools
import random
import shutil
import sys
import threading
import time
from pathlib import Path

import psycopg2
import requests

sys.path.insert(0, str(Path(__file__).parent))
from fault_checker import judge
from fault_load import Client, ClientLog
from fault_stack import Stack, stack


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--intents", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=None, help="default: one for 500 intents")
    parser.add_argument("--flushes", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=5, help="of Postgres, as a power cut")
    parser.add_argument(
        "--timeouts", type=float, default=0.02, help="share of changes that time out after they are done"
    )
    parser.add_argument(
        "--duplicates-accepted",
        action="store_true",
        help="the broker takes a client order id twice: only asking saves us",
    )
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--accounts", type=int, default=40)
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="short time-outs, no fsync in the servers")
    parser.add_argument("--keep", action="store_true", help="leave the logs behind even if all went well")
    given = parser.parse_args()
    given.kills = max(200, given.intents // 500) if given.kills is None else given.kills
    return given


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Load:
    """Clients in threads, until the wanted number of intents was answered."""

    def __init__(self, on: Stack, log: ClientLog, wanted: int, clients: int, seed: int) -> None:
        self._numbers, self.wanted, self.started = itertools.count(1), wanted, 0
        self.errors: list[BaseException] = []
        self.clients = [
            Client(on.base_url, on.api_key, on.accounts, log, random.Random(seed + number)) for number in range(clients)
        ]
        self.threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in self.clients]

    def _run(self, client: Client) -> None:
        try:
            client.run(self._more)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            self.errors.append(error)

    def _more(self) -> bool:
        number = next(self._numbers)
        self.started = min(max(self.started, number), self.wanted)
        return number <= self.wanted and not self.errors

    def running(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)


def wreak(on: Stack, load: Load, given: argparse.Namespace) -> dict[str, int]:
    """Spread the faults over the load; called from the main thread, which starts every process."""
    done = {"kills": 0, "flushes": 0, "restarts": 0}
    wanted = {"kills": given.kills, "flushes": given.flushes, "restarts": given.restarts}
    deeds = {"kills": on.kill_one, "flushes": on.flush, "restarts": on.restart_postgres}
    said = time.monotonic()
    while load.running():
        for name, deed in deeds.items():
            due = wanted[name] * load.started / given.intents
            while done[name] < wanted[name] and done[name] + 0.5 < due:
                deed()
                done[name] += 1
                if name == "kills":
                    break  # let the next one start before it is the next victim
        on.revive()
        if time.monotonic() - said > 10:
            said = time.monotonic()
            say(f"  {load.started} of {given.intents} intents, {done}")
        time.sleep(0.05)
    on.revive()
    return done


def wait_until_settled(on: Stack, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    open_here = """
        SELECT count(*) FROM intents.intent
        WHERE open_actions > 0 OR (symbol = 'FAULT' AND status IN ('ACCEPTED', 'PARTIALLY_FILLED'))
    """
    while time.monotonic() < deadline:
        connection = psycopg2.connect(on.admin_url)
        with connection, connection.cursor() as cursor:
            cursor.execute(open_here)
            left = cursor.fetchone()
        connection.close()
        if left == (0,):
            return
        time.sleep(0.25)


def main() -> int:
    given = arguments()
    started = time.monotonic()
    with stack(accounts=given.accounts, executors=given.executors, quick=given.quick, seed=given.seed) as on:
        requests.put(
            f"{on.broker_url}/sim/quotes/FAULT", json={"bid": "9.99", "ask": "10"}, timeout=5
        ).raise_for_status()
        faults = {"timeout_after_accept": given.timeouts, "duplicate_event": 0.02, "unavailable": 0.005}
        hang = {
            "hang_seconds": 1.0 if given.quick else 4.0,
            "accept_duplicate_client_order_ids": given.duplicates_accepted,
        }
        requests.put(f"{on.broker_url}/sim/faults", json=faults | hang, timeout=5).raise_for_status()
        log = ClientLog(on.directory / "answered.ndjson")
        load = Load(on, log, given.intents, given.clients, given.seed)
        loading = time.monotonic()
        for thread in load.threads:
            thread.start()
        done = wreak(on, load, given)
        loaded = time.monotonic() - loading
        requests.put(f"{on.broker_url}/sim/faults", json={}, timeout=5).raise_for_status()
        on.revive_well()
        wait_until_settled(on, 120 if given.quick else 300)
        settled = time.monotonic() - loading
        verdict = judge(on.admin_url, on.broker_url, log.path)
        verdict.facts |= {
            "processes killed": sum(on.kills.values()),
            "by kind": on.kills,
            "flushes": done["flushes"],
            "restarts of Postgres": done["restarts"],
            "requests repeated by clients": sum(client.retries for client in load.clients),
            "seconds of load": round(loaded, 1),
            "seconds until settled": round(settled, 1),
            "seconds in all": round(time.monotonic() - started, 1),
        }
        for error in load.errors:
            verdict.faults["a client gave up"].append(repr(error)[:300])
        kept = f", logs in {on.directory}" if given.keep or not verdict.good else ""
        say(f"fault run of {given.intents} intents{kept}\n{verdict}")
    if verdict.good and not given.keep:
        shutil.rmtree(on.directory, ignore_errors=True)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
