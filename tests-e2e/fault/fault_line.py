"""The line to the broker as a process of its own: a proxy that strikes by chance, and writes down what it was given.

    python fault_line.py --upstream 8081 --listen 8082 --seed 7 --journal requests.ndjson

On standard input: `on`, `off` (it begins as off), and `end`. It is not one of those that are killed, so what has left
the platform is known, and when, even if the broker was frozen or dead at that moment.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fault_journal import Journal
from fault_proxy import BrokerProxy, Exchange, Fault, cut_after, cut_before, delay, half_close, late, passing

from tip_local.processes import with_parent_death_signal
from tip_testing.ports import reserved_port

CHANGES = ("POST", "PATCH", "DELETE")
CUT_STREAMS_EVERY = 25.0
LONGEST_LATE = 12.0
# Share of requests that each fault strikes: of those that change orders, and of reads.
CHANGE_FAULTS = {"cut_before": 0.01, "cut_after": 0.01, "half_close": 0.005, "delay": 0.01, "late": 0.012}
READ_FAULTS = {"cut_before": 0.004, "half_close": 0.002, "delay": 0.004}


class Chance:
    """Draws what happens to a request, and notes every request that may change an order."""

    def __init__(self, seed: int, journal: Journal) -> None:
        self.on = False
        self._dice = random.Random(seed)
        self._journal = journal
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        name, fault = self._drawn(exchange.request.method)
        if exchange.request.method in CHANGES:
            request = exchange.request
            self._journal.write(
                {
                    "method": request.method,
                    "path": request.path,
                    "key_id": request.key_id,
                    "client_order_id": request.client_order_id,
                    "received": request.received_at,
                    "fault": name,
                }
            )
        fault(exchange)

    def _drawn(self, method: str) -> tuple[str | None, Fault]:
        shares = CHANGE_FAULTS if method in CHANGES else READ_FAULTS
        with self._lock:
            drawn, seconds = self._dice.random(), self._dice.choice((0.3, 1.5, 5.0, 8.0, LONGEST_LATE))
        if self.on:
            for name, share in shares.items():
                drawn -= share
                if drawn < 0:
                    return name, _made(name, seconds)
        return None, passing


def _made(name: str, seconds: float) -> Fault:
    faults: dict[str, Fault] = {
        "cut_before": cut_before,
        "cut_after": cut_after,
        "half_close": half_close,
        "delay": delay(min(seconds, 1.5)),
        "late": late(seconds),
    }
    return faults[name]


class Line:
    """The proxy in front of the broker, in a process of its own."""

    def __init__(self, seed: int) -> None:
        self._seed, self.port = seed, reserved_port()
        self.journal = Path(f"/tmp/tip-line-{self.port}-{seed}.ndjson")

    def open(self, upstream: int) -> int:
        options = ["--upstream", upstream, "--listen", self.port, "--seed", self._seed, "--journal", self.journal]
        program = with_parent_death_signal([sys.executable, __file__, *map(str, options)], signal.SIGKILL)
        with self.journal.with_suffix(".log").open("w") as log:
            self._process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self.port

    def command(self, word: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()

    def move_to(self, directory: Path) -> None:
        """What it noted, and what it complained about."""
        for name in (self.journal, self.journal.with_suffix(".log")):
            shutil.move(name, directory / f"line{name.suffix}")

    def close(self) -> None:
        self.command("end")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("upstream", "listen", "seed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    options = parser.parse_args(given)
    journal = Journal(options.journal)
    chance = Chance(options.seed, journal)
    with BrokerProxy(options.upstream, listen_port=options.listen) as proxy:
        proxy.on("*", chance, when=lambda request: not request.headers.get("Upgrade"))
        threading.Thread(target=_tidy, args=(proxy, chance), daemon=True).start()
        sys.stdout.write(json.dumps({"port": proxy.port}) + "\n")
        sys.stdout.flush()
        for line in sys.stdin:
            if line.strip() == "end":
                break
            chance.on = line.strip() == "on"
            journal.flush()
    journal.close()
    return 0


def _tidy(proxy: BrokerProxy, chance: Chance) -> None:
    """Forget what was noted already, and cut the broker's streams now and then."""
    pause = threading.Event()
    while not pause.wait(CUT_STREAMS_EVERY):
        proxy.requests.clear()
        if chance.on:
            proxy.cut_streams()


if __name__ == "__main__":
    sys.exit(main())
