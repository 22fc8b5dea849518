"""What one organization's orders that never answer cost another: from its submit until its order is FILLED.

On a platform of its own, as `make up` runs it. One organization has six accounts with many orders each on a symbol for
which the broker executes every request and never answers. Another submits market orders, one after the other: first
with nothing else going on, then during the attack.

    make bench NAME=fairness_execution
    make bench NAME="fairness_execution --orders 20 --probes 5"
"""

import argparse
import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import requests

from bench.harness import keep, machine
from bench.local_platform import Platform, platform
from tip_testing.commands import batch, create

ATTACKER, OTHER = "acme", "globex"
ACCOUNTS, ORDERS, PROBES = 6, 100, 20
NEVER_ANSWERS = "SIM.TIMEOUT_AFTER_ACCEPT"
LONGEST_SECONDS = 60.0
"""After which an order that is not filled counts as filled at that time."""
TARGET_SECONDS = 5.0
BATCH = 100


@dataclass(frozen=True)
class Trader:
    """One account and its organization's key."""

    base_url: str
    api_key: str
    account_id: str
    quantity: str = "1"

    @property
    def path(self) -> str:
        return f"{self.base_url}/v1/accounts/{self.account_id}/intents"

    @property
    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.api_key}

    def submit(self, symbol: str) -> str:
        answer = requests.post(self.path, json=create(symbol, self.quantity), headers=self.headers, timeout=30)
        answer.raise_for_status()
        return str(answer.json()["intent_id"])

    def submit_many(self, symbol: str, count: int) -> None:
        for begin in range(0, count, BATCH):
            body = batch(*[create(symbol, "1")] * min(BATCH, count - begin))
            answer = requests.post(f"{self.path}/batch", json=body, headers=self.headers, timeout=60)
            answer.raise_for_status()
            assert all("problem" not in result for result in answer.json()["results"]), answer.text[:500]

    def seconds_to_filled(self, symbol: str) -> float:
        began = time.monotonic()
        intent_id = self.submit(symbol)
        while (seconds := time.monotonic() - began) < LONGEST_SECONDS:
            answer = requests.get(f"{self.path}/{intent_id}", headers=self.headers, timeout=30)
            status = answer.json()["state"]["status"]
            if status == "FILLED":
                return seconds
            if status in ("REJECTED", "DENIED", "FAILED"):
                raise SystemExit(f"bench: an order is {status}: {answer.text}")
            time.sleep(0.01)
        return LONGEST_SECONDS

    def sibling(self) -> "Trader":
        """Another account of the organization."""
        body = {"name": "sibling", "broker": "paper", "environment": "paper"}
        answer = requests.post(f"{self.base_url}/v1/accounts", json=body, headers=self.headers, timeout=30)
        answer.raise_for_status()
        return Trader(self.base_url, self.api_key, answer.json()["id"])


class Found(NamedTuple):
    unloaded: list[float]
    attacked: list[float]


def trader(running: Platform, organization: str) -> Trader:
    local = running.local
    of = local["organizations"][organization]
    return Trader(local["base_url"], of["api_keys"]["paper"], of["accounts"]["paper"])


def measure(orders: int, probes: int) -> Found:
    with platform() as running:
        first, other = trader(running, ATTACKER), trader(running, OTHER)
        attackers = [first, *(first.sibling() for _ in range(ACCOUNTS - 1))]
        other.seconds_to_filled("AAPL")  # the first of an account opens connections and streams
        unloaded = [other.seconds_to_filled("AAPL") for _ in range(probes)]
        for attacker in attackers:
            attacker.submit_many(NEVER_ANSWERS, orders)
        attacked = [other.seconds_to_filled("AAPL") for _ in range(probes)]
    return Found(unloaded, attacked)


def table(found: Found) -> str:
    lines = ["| from submit to FILLED | p50 | worst |", "|---|---|---|"]
    for name, seconds in (("with nothing else going on", found.unloaded), ("during the attack", found.attacked)):
        lines.append(f"| {name} | {statistics.median(seconds):.2f} s | {max(seconds):.2f} s |")
    met = "yes" if max(found.attacked) <= TARGET_SECONDS else "NO"
    return "\n".join([*lines, "", f"Asked: {TARGET_SECONDS:g} s at most. Met: {met}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=ORDERS, help="of each of the attacker's accounts")
    parser.add_argument("--probes", type=int, default=PROBES)
    chosen = parser.parse_args()
    found = table(measure(chosen.orders, chosen.probes))
    print("\n" + found)
    if (chosen.orders, chosen.probes) == (ORDERS, PROBES):
        when = f"`make bench NAME=fairness_execution`, {datetime.now(UTC):%Y-%m-%d}, {machine()}"
        notes = (
            f"The attacker: {ACCOUNTS} accounts with {ORDERS} orders each on `{NEVER_ANSWERS}`. The other "
            f"organization: {PROBES} market orders, one after the other."
        )
        keep("Fairness of execution", f"## Fairness of execution\n\n{when}\n\n{notes}\n\n{found}\n")


if __name__ == "__main__":
    main()
