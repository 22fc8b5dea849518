"""The whole platform as a user has it: what an order costs and how long it takes, from the POST to the stream.

On a platform of its own, as `make up` runs it: market orders over 32 paper accounts, first none, then so many a second,
then as many as are answered. The rate is compared with pgbench's transaction of a submit, measured before and after on
an equal Postgres (`bench.submit`). Nothing else may run meanwhile.

    make bench NAME=endtoend
    make bench NAME="endtoend --seconds 20 --sustained 30"      # a trial; keeps nothing
    make bench NAME="endtoend --only 20 --seconds 60"           # one load
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg2
import requests

from bench.endtoend_cost import Usage, memory_mib, usage
from bench.endtoend_load import CONNECTIONS, Orders, Taken
from bench.endtoend_report import report
from bench.endtoend_streams import received, subscribers
from bench.harness import keep
from bench.local_platform import Platform, platform
from bench.submit import transaction
from bench.submit_stage import stage
from tip_local.settings import Settings
from tip_local.stack import running_stack

ACCOUNTS = 32
SECONDS, SUSTAINED_SECONDS, IDLE_SECONDS, PGBENCH_SECONDS = 60, 600, 60, 15
DRAIN_SECONDS = 120
LIMITS = {
    "max_quantity": "1000000", "max_notional": "1000000000", "price_collar_bps": 9000, "max_orders_per_minute": 1000000,
    "max_orders_per_day": 100000000, "max_position_quantity": "100000000", "max_position_notional": "10000000000",
    "max_open_orders": 1000000, "max_gross_exposure": "100000000000", "max_daily_loss": "1000000000",
}  # fmt: skip

ENDED = """
SELECT intent_id::text, extract(epoch FROM min(created_at))::float8,
    extract(epoch FROM min(created_at) FILTER (WHERE to_status = 'FILLED'))::float8
FROM intents.account_event
WHERE type = 'BROKER_ORDER' AND to_status IN ('ACCEPTED', 'PARTIALLY_FILLED', 'FILLED')
    AND created_at >= to_timestamp(%s)
GROUP BY intent_id
"""
WAITING = """
SELECT count(*) FROM intents.intent
WHERE status NOT IN ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED')
"""


@dataclass(frozen=True)
class Phase:
    """A load: so many orders a second, or as many as are answered."""

    name: str
    rate: float | None
    seconds: float
    subscribed: bool = True
    limited: bool = False
    """Every limit is set from here on."""


@dataclass(frozen=True)
class Found:
    """What one load cost and how long it took. Latencies are milliseconds since the answer of the POST."""

    phase: Phase
    seconds: float
    answered: int
    filled: int
    """Within the load's own time."""
    pushed_back: int
    waiting: int
    """Not filled at its end."""
    used: Usage
    latencies: Mapping[str, Sequence[float]]
    memory_mib: float


@dataclass(frozen=True)
class Bench:
    running: Platform
    database_url: str
    orders: Orders
    stream_target: str
    admin_token: str

    def execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        connection = psycopg2.connect(self.database_url)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.fetchall()
        finally:
            connection.close()

    def call(self, method: str, path: str, body: object) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        answer = requests.request(method, self.orders.base_url + path, json=body, headers=headers, timeout=30)
        answer.raise_for_status()
        return answer.json() if answer.content else {}

    def limit(self) -> None:
        for account in self.orders.accounts:
            self.call("PUT", f"/v1/controls/accounts/{account}/limits", LIMITS)
        self.orders.paced(ACCOUNTS, 3)  # the prices that limits need, and whatever else is read once

    def waiting(self) -> int:
        return int(self.execute(WAITING)[0][0])  # type: ignore[call-overload, no-any-return]

    def drain(self) -> None:
        until = time.monotonic() + DRAIN_SECONDS
        while self.waiting():
            if time.monotonic() > until:
                raise SystemExit(f"bench: {self.waiting()} orders are not filled after {DRAIN_SECONDS} s")
            time.sleep(0.2)

    def used(self) -> Usage:
        return usage(self.running, self.database_url)

    def idle(self, seconds: float) -> Found:
        before = self.used()
        time.sleep(seconds)
        return Found(
            Phase("idle", 0, seconds), seconds, 0, 0, 0, self.waiting(), self.used() - before, {},
            memory_mib(self.running),
        )  # fmt: skip

    def measure(self, phase: Phase) -> Found:
        file = self.running.home.path / "received.txt"
        file.unlink(missing_ok=True)
        with ExitStack() as stack:
            if phase.subscribed:
                opened = subscribers(self.stream_target, self.orders.api_key, file, self.orders.accounts)
                stack.enter_context(opened)
            before, began = self.used(), time.time()
            taken = self._load(phase)
            ended, waiting = time.time(), self.waiting()
            memory = memory_mib(self.running)
            self.drain()
            time.sleep(1.5)  # what follows a fill, and the streams
            used = self.used() - before
        times = {str(intent): (accepted, filled) for intent, accepted, filled in self.execute(ENDED, began)}
        filled = sum(filled is not None and float(filled) <= ended for _, filled in times.values())  # type: ignore[arg-type]
        return Found(
            phase, ended - began, len(taken.orders), filled, taken.pushed_back, waiting, used,
            latencies(taken, times, received(file)), memory,
        )  # fmt: skip

    def _load(self, phase: Phase) -> Taken:
        if phase.rate is None:
            return self.orders.saturating(phase.seconds)
        return self.orders.paced(phase.rate, phase.seconds)


def latencies(
    taken: Taken, times: Mapping[str, tuple[object, object]], delivered: Mapping[str, float]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"answer": [], "accepted": [], "filled": [], "streamed": []}
    for intent, answered in taken.orders.items():
        accepted, filled = times[intent]
        found["answer"].append(1000 * answered.seconds)
        found["accepted"].append(1000 * (float(accepted) - answered.at))  # type: ignore[arg-type]
        found["filled"].append(1000 * (float(filled) - answered.at))  # type: ignore[arg-type]
        if intent in delivered:
            found["streamed"].append(1000 * (delivered[intent] - answered.at))
    return found


@contextmanager
def prepared() -> Iterator[Bench]:
    with platform() as running:
        local = running.local
        acme = local["organizations"]["acme"]
        settings = Settings.from_env(running.environment)
        orders = Orders(local["base_url"], acme["api_keys"]["paper"], [])
        bench = Bench(
            running, running_stack(settings).admin_url, orders, f"127.0.0.1:{settings.stream_port}",
            acme["tokens"]["admin"],
        )  # fmt: skip
        accounts = [bench.call("POST", "/v1/accounts", _account(number)) for number in range(ACCOUNTS)]
        orders.accounts.extend(str(account["id"]) for account in accounts)  # type: ignore[attr-defined]
        orders.paced(ACCOUNTS, 6)  # connections, streams to the broker, plans, caches
        bench.drain()
        time.sleep(10)
        yield bench


def _account(number: int) -> dict[str, object]:
    return {"name": f"account {number}", "broker": "paper", "environment": "paper"}


def pgbench_rate(seconds: int) -> float:
    with stage() as on:
        script = transaction(on)
        on.pgbench(script, CONNECTIONS, 5)
        return statistics.median(on.pgbench(script, CONNECTIONS, seconds) for _ in range(3))


def phases(seconds: float, sustained: float) -> list[Phase]:
    return [
        *(Phase(f"{rate:g} a second", rate, seconds) for rate in (20, 50, 60, 200)),
        Phase("saturated, no subscribers", None, seconds, subscribed=False),
        Phase("saturated", None, sustained),
        Phase("saturated, every limit set", None, seconds, limited=True),
    ]


def measure(chosen: Sequence[Phase], idle_seconds: float) -> list[Found]:
    found = []
    with prepared() as bench:
        found.append(bench.idle(idle_seconds))
        for phase in chosen:
            if phase.limited:
                bench.limit()
            found.append(bench.measure(phase))
            print(report(found[-1:], None), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load")
    parser.add_argument("--sustained", type=float, default=SUSTAINED_SECONDS, help="seconds of the longest one")
    parser.add_argument("--only", help="those loads whose name begins with this")
    chosen = parser.parse_args()
    loads = [phase for phase in phases(chosen.seconds, chosen.sustained) if phase.name.startswith(chosen.only or "")]
    whole = not chosen.only and (chosen.seconds, chosen.sustained) == (SECONDS, SUSTAINED_SECONDS)
    rates = [pgbench_rate(PGBENCH_SECONDS)] if whole else []
    found = measure(loads, IDLE_SECONDS if whole else min(IDLE_SECONDS, chosen.seconds))
    rates += [pgbench_rate(PGBENCH_SECONDS if whole else 5)]
    section = report(found, statistics.mean(rates))
    print("\n" + section)
    if whole:
        keep("End to end", section)


if __name__ == "__main__":
    main()
