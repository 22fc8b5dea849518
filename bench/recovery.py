"""How long one kill -9 is felt: from the kill until the next intent submitted after it is ACCEPTED.

On a platform of its own, as `make up` runs it, at 20 intents a second. Each kind of process is killed ten times, in
turn with the others, so that whoever is killed has been healthy for a while, as in life.

    make bench NAME=recovery
    make bench NAME="recovery executor web --kills 3"
"""

import argparse
import os
import signal
import statistics
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import requests

from bench.harness import keep, machine
from bench.local_platform import Platform, platform
from tip_testing.commands import create

PER_SECOND = 20
KILLS = 10
LONGEST_SECONDS = 30.0
READ_SECONDS = 0.5
SUBMIT_SECONDS = 10.0
CALM_SECONDS = 0.3
"""The platform is itself again when an intent is accepted in this time,"""
HEALTHY_SECONDS = 3.0
"""and every process has had this long to start: where two serve one port, either answers for both."""
ACCEPTED = {"ACCEPTED", "PARTIALLY_FILLED", "FILLED"}


class Kind(NamedTuple):
    """What is killed, taking turns, and the seconds it may cost: median and worst."""

    name: str
    processes: tuple[str, ...]
    p50: float
    worst: float


KINDS = (
    Kind("executor", ("intents-executor", "intents-executor-2"), 2.0, 3.0),
    Kind("paper broker", ("paper-broker",), 3.0, 5.0),
    Kind("Postgres", ("postgres",), 3.0, 6.0),
    Kind("web", ("web", "web-2"), 1.0, 2.0),
    Kind("workers", ("intents-workers", "identity-workers", "controls-workers"), 0.5, 1.0),
    Kind("relay", ("accounts-relay",), 0.5, 1.0),
    Kind("reconciler", ("intents-reconciler",), 0.5, 1.0),
    Kind("stream gateway", ("stream-gateway",), 0.5, 1.0),
    Kind("Valkey", ("valkey",), 0.5, 1.0),
    Kind("consumer", ("accounts-consumer",), 0.5, 1.0),
)


class Submitted(NamedTuple):
    at: float
    """When the request was begun, by the monotonic clock."""
    path: str


@dataclass
class Load:
    """Submits at a steady rate, whatever comes back, and remembers what was taken in."""

    base_url: str
    account_id: str
    api_key: str
    taken: "deque[Submitted]" = field(default_factory=lambda: deque(maxlen=2000))
    refused: int = 0
    _here: threading.local = field(default_factory=threading.local)

    def run(self, stop: threading.Event) -> None:
        with ThreadPoolExecutor(64) as pool:
            number, due = 0, time.monotonic()
            while not stop.is_set():
                pool.submit(self._submit, number)
                number, due = number + 1, due + 1 / PER_SECOND
                time.sleep(max(0.0, due - time.monotonic()))

    @property
    def session(self) -> requests.Session:
        if not hasattr(self._here, "session"):
            self._here.session = requests.Session()
            self._here.session.headers["x-api-key"] = self.api_key
        return self._here.session  # type: ignore[no-any-return]

    def _submit(self, number: int) -> None:
        body = create("AAPL", "1", ("BUY", "SELL")[number % 2])
        path = f"/v1/accounts/{self.account_id}/intents"
        at = time.monotonic()
        try:
            answer = self.session.post(self.base_url + path, json=body, timeout=SUBMIT_SECONDS)
            answer.raise_for_status()
        except requests.RequestException:
            self.refused += 1
            return
        self.taken.append(Submitted(at, f"{path}/{answer.json()['intent_id']}"))

    def is_accepted(self, submitted: Submitted) -> bool:
        try:
            answer = self.session.get(self.base_url + submitted.path, timeout=READ_SECONDS)
            return answer.ok and answer.json()["state"]["status"] in ACCEPTED
        except requests.RequestException:
            return False

    def seconds_to_accepted(self, since: float) -> float:
        """From the moment until one that was submitted after it is accepted; the longest time if none is."""
        while time.monotonic() - since < LONGEST_SECONDS:
            after = [submitted for submitted in list(self.taken) if submitted.at >= since]
            if any(self.is_accepted(submitted) for submitted in (*after[:3], *after[3:][-2:])):
                break
            time.sleep(0.005)
        return time.monotonic() - since


def load_on(running: Platform) -> Load:
    local = running.local
    acme = local["organizations"]["acme"]
    return Load(local["base_url"], acme["accounts"]["paper"], acme["api_keys"]["paper"])


def is_whole(running: Platform) -> bool:
    return all(
        process["state"] == "ready" and _age(process["since"]) > HEALTHY_SECONDS
        for process in running.processes().values()
    )


def _age(since: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()


def calm(running: Platform, load: Load) -> None:
    """Wait until everything runs and an intent takes no longer than ever."""
    deadline = time.monotonic() + 2 * LONGEST_SECONDS
    while not (is_whole(running) and load.seconds_to_accepted(time.monotonic()) < CALM_SECONDS):
        if time.monotonic() > deadline:
            raise SystemExit("bench: the platform does not come to rest; is something else running here?")
        time.sleep(0.1)


def kill(running: Platform, load: Load, name: str) -> float:
    calm(running, load)
    pid = running.processes()[name]["pid"]
    since = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    return load.seconds_to_accepted(since)


def measure(kinds: list[Kind], kills: int) -> dict[str, list[float]]:
    outages: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    stop = threading.Event()
    with platform() as running:
        load = load_on(running)
        submitting = threading.Thread(target=load.run, args=(stop,))
        submitting.start()
        try:
            for turn in range(kills):
                for kind in kinds:
                    outages[kind.name].append(kill(running, load, kind.processes[turn % len(kind.processes)]))
                print(
                    f"  turn {turn + 1}/{kills}: "
                    + ", ".join(f"{name} {seconds[-1]:.2f}" for name, seconds in outages.items())
                )
        finally:
            stop.set()
            submitting.join()
    return outages


def table(kinds: list[Kind], outages: dict[str, list[float]]) -> str:
    lines = ["| killed | p50 | worst | goal p50 | goal worst | met |", "|---|---|---|---|---|---|"]
    for kind in kinds:
        p50, worst = statistics.median(outages[kind.name]), max(outages[kind.name])
        met = "yes" if p50 <= kind.p50 and worst <= kind.worst else "NO"
        lines.append(f"| {kind.name} | {p50:.2f} s | {worst:.2f} s | {kind.p50} s | {kind.worst} s | {met} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=", ".join(kind.name for kind in KINDS))
    parser.add_argument("--kills", type=int, default=KILLS)
    chosen = parser.parse_args()
    if unknown := set(chosen.kinds) - {kind.name for kind in KINDS}:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    kinds = [kind for kind in KINDS if not chosen.kinds or kind.name in chosen.kinds]
    found = table(kinds, measure(kinds, chosen.kills))
    print("\n" + found)
    if kinds == list(KINDS) and chosen.kills == KILLS:
        when = f"`make bench NAME=recovery`, {datetime.now(UTC):%Y-%m-%d}, {machine()}"
        notes = (
            f"From kill -9 until an intent submitted after it is read as ACCEPTED, on the platform of `make up`; "
            f"{PER_SECOND} intents a second, {KILLS} kills of each kind, in turn."
        )
        keep("Recovery", f"## Recovery\n\n{when}\n\n{found}\n\n{notes}\n")


if __name__ == "__main__":
    main()
