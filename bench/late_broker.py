"""What a broker that answers late, never or not at all costs the orders at another: from submit until FILLED.

On a platform of its own, as `make up` runs it. Two organizations trade at Alpaca, which is a server here, at random
moments, so many orders a second on average. Alpaca answers at once, then behaves as badly as each phase says, so that
orders come in faster than all threads can send them, then answers at once again, and so on: a machine that is slower
for a minute is so for both. Market orders of one of the two go to the paper broker at a steady rate: before each phase,
and in it. In one phase, `prompt`, Alpaca answers at once as before: what differs there is chance, and if that is more
than a bad broker may cost, the machine was not quiet and nothing is claimed. An order is timed from the moment at which
it is due, also if the one before it is late. It does not count if a processor stood still within a tenth of a second of
that (bench/stalls.py), however long it took.

    make bench NAME=late_broker
    make bench NAME="late_broker --probes 20 --rounds 1"
    make bench NAME="late_broker --pace 0.25"     on a machine that is four times as slow
"""

import argparse
import json
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, cycle
from typing import Any, NamedTuple

import requests

from bench.fairness_execution import Trader, trader
from bench.harness import Ratio, meanwhile, percentile, report, undisturbed
from bench.local_platform import platform
from bench.stalls import Stalls, watched
from tip_testing.commands import create, limit

ACCOUNTS = 6
ROUNDS, PROBES = 8, 250
"""Of each phase, and how many orders are timed in one, and before it."""
LATE_SECONDS = 2.5
"""Shorter than a broker may take (BROKER_READ_SECONDS): each call succeeds, and holds its thread for so long."""
GOAL = 1.2
PHASES = ("prompt", "late", "silent", "away")
WARMING = 400
"""Orders until plans are made, on all connections that are usually needed."""
STALL_SECONDS = 0.1
"""Before and in a phase alike: whether an order counts must not depend on how long it took."""
BEGINNING_SECONDS = 5.0
"""Until a phase has taken every thread that it can."""


class Pace(NamedTuple):
    """How much is requested: a machine must do that with room to spare, or all that is measured is how full it is."""

    share: float

    @property
    def orders(self) -> float:
        """A second, to the bad broker."""
        return 15 * self.share

    @property
    def probes(self) -> float:
        """A second, to the other one."""
        return 20 * self.share

    @property
    def threads(self) -> int:
        """Of each of the two executors: fewer than by default, so that orders come in faster than they can be sent."""
        return max(1, int(16 * self.share))


class BadBroker:
    """Alpaca's answers to what an executor requests, each as `mood` says. It fills at once what it is sent."""

    def __init__(self) -> None:
        self.mood = "prompt"
        self.submitted = self.orders = 0
        """How many orders the platform has taken in for it, and how many of them it has answered."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if (mood := outer.mood) in ("away", "silent"):
                    time.sleep(60.0 if mood == "silent" else 0.0)
                    self.close_connection = True
                    return
                time.sleep(LATE_SECONDS if mood == "late" else 0.0)
                key_id = self.headers["APCA-API-KEY-ID"] or ""
                self._answer(*outer.answer(key_id, self.command, self.path, json.loads(body) if body else None))

            def _answer(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *_: Any) -> None:
                """The executor has given up."""

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, key_id: str, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.startswith("/v2/account"):
            return 200, {"id": key_id, "currency": "USD", "cash": "0", "equity": "0", "buying_power": "0"}
        if method == "POST":
            self.orders += 1
            moment = "2026-01-05T12:00:00Z"
            filled = {"status": "filled", "filled_qty": body["qty"], "filled_avg_price": "1"}
            shown = {"id": f"order-{self.orders}", "created_at": moment, "updated_at": moment}
            return 200, {**body, **shown, **filled}
        return (404, {"message": "order not found"}) if "client_order_id" in path else (200, [])


def with_credential(made: Trader) -> Trader:
    body = {"label": "bench", "secret": {"key_id": made.account_id, "secret_key": "bench"}}
    path = f"{made.base_url}/v1/accounts/{made.account_id}/credentials"
    requests.post(path, json=body, headers=made.headers, timeout=30).raise_for_status()
    return made


def at_alpaca(of: Trader) -> Trader:
    body = {"name": "late", "broker": "alpaca", "environment": "paper"}
    answer = requests.post(f"{of.base_url}/v1/accounts", json=body, headers=of.headers, timeout=30)
    answer.raise_for_status()
    return with_credential(Trader(of.base_url, of.api_key, answer.json()["id"]))


def trade(traders: Sequence[Trader], broker: BadBroker, pace: Pace, stop: threading.Event) -> None:
    """Orders at random moments.

    The orders that are timed come at a steady rate. At another steady rate these would meet them always or never, by
    the luck of a run, while the answers of a late broker meet them at random.
    """
    session, due, chance = requests.Session(), time.monotonic(), random.Random(1)
    for made in cycle(traders):
        if stop.wait(max(0.0, due - time.monotonic())):
            return
        order = limit("AAPL", "1", "1.00")
        session.post(made.path, json=order, headers=made.headers, timeout=30).raise_for_status()
        broker.submitted += 1
        due += chance.expovariate(pace.orders)


class Timed(NamedTuple):
    """How long each order of each round took, in seconds: just before a phase, and in it."""

    before: list[list[float]]
    during: list[list[float]]

    def counted(self, probes: int) -> str:
        """Which part of the orders, before and in it."""
        return " / ".join(f"{sum(map(len, side)) / (probes * len(side)):.0%}" for side in self)


def measure(rounds: int, probes: int, pace: Pace) -> tuple[dict[str, Timed], int]:
    """By phase; and how many stalls of a processor were seen."""
    broker = BadBroker()
    timed = {phase: Timed([], []) for phase in PHASES}
    urls = {"ALPACA_PAPER_URL": broker.url, "ALPACA_DATA_URL": broker.url}
    settings = {"EXECUTOR_THREADS": str(pace.threads), "BACKLOG_MAX_AGE_SECONDS": "1000000"}
    with watched() as stalls, platform(**urls, **settings) as running:
        probing, other = replace(trader(running, "acme"), quantity="0.01"), trader(running, "globex")
        trading = [at_alpaca(of) for of in (probing, other) for _ in range(ACCOUNTS)]
        with meanwhile(partial(trade, trading, broker, pace)):
            prepare(broker, pace, "prompt")
            times(probing, stalls, pace, WARMING)  # the first of an account opens connections and streams
            for turn in range(rounds * len(PHASES)):
                number, place = divmod(turn, len(PHASES))
                phase = PHASES[(number + place) % len(PHASES)]  # another one first in each round
                before, during = undisturbed(partial(in_turn, probing, broker, stalls, pace, phase, probes))
                timed[phase].before.append(before)
                timed[phase].during.append(during)
                print(
                    f"  {number + 1} of {rounds}, {phase}: {described(before)} before, {described(during)} in it",
                    flush=True,
                )
    broker.server.shutdown()
    return timed, len(stalls)


def in_turn(
    probing: Trader, broker: BadBroker, stalls: Stalls, pace: Pace, phase: str, probes: int
) -> tuple[list[float], list[float]]:
    """Each phase begins with what it makes wait: a longer one would be another phase."""
    prepare(broker, pace, "prompt")
    before = times(probing, stalls, pace, probes)
    prepare(broker, pace, phase)
    return before, times(probing, stalls, pace, probes)


def prepare(broker: BadBroker, pace: Pace, mood: str) -> None:
    broker.mood = mood
    time.sleep(BEGINNING_SECONDS)
    if mood == "prompt":
        catch_up(broker, pace)


def times(probing: Trader, stalls: Stalls, pace: Pace, probes: int) -> list[float]:
    """From when each submit was due until its fill was recorded: whoever polls for that slows down what he measures."""
    session, first = requests.Session(), time.time()
    began: dict[str, float] = {}
    for number in range(probes):
        due = first + number / pace.probes
        time.sleep(max(0.0, due - time.time()))
        answer = session.post(probing.path, json=create("AAPL", probing.quantity), headers=probing.headers, timeout=30)
        answer.raise_for_status()
        began[answer.json()["intent_id"]] = due
    lasted = [(moment, filled_at(probing, session, intent_id)) for intent_id, moment in began.items()]
    return [filled - moment for moment, filled in lasted if not stalls.overlap(moment, moment + STALL_SECONDS)]


def filled_at(probing: Trader, session: requests.Session, intent_id: str) -> float:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        state = session.get(f"{probing.path}/{intent_id}", headers=probing.headers, timeout=30).json()["state"]
        if state["status"] == "FILLED":
            return datetime.fromisoformat(state["updated_at"]).timestamp()
        time.sleep(0.1)
    raise SystemExit(f"bench: an order is {state['status']} after a minute")


def described(seconds: list[float]) -> str:
    return " / ".join(f"{1000 * percentile(seconds, part):.0f}" for part in (0.5, 0.99)) + " ms (p50 / p99)"


def catch_up(broker: BadBroker, pace: Pace) -> None:
    """Until what waited for the broker has come there, and only what is new comes."""
    deadline = time.monotonic() + 240
    while broker.submitted - broker.orders > max(2, pace.orders / 2) or not broker.orders:
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: {broker.orders} of {broker.submitted} orders came to the other broker")
        time.sleep(0.1)
    time.sleep(BEGINNING_SECONDS)


def ratios(timed: dict[str, Timed]) -> list[Ratio]:
    return [ratio(phase, rounds, part) for phase, rounds in timed.items() for part in (0.5, 0.99)]


def ratio(phase: str, rounds: Timed, part: float) -> Ratio:
    """Of all orders of all rounds together: the p99 of one round is its third slowest order, and that is chance."""
    before, during = (1000 * percentile(list(chain(*some)), part) for some in rounds)
    each = [percentile(under, part) / percentile(usual, part) for usual, under in zip(*rounds, strict=True)]
    goal = GOAL if part == 0.99 and phase != "prompt" else None
    return Ratio(
        f"{phase}, p{100 * part:.0f} / before", "ms", before, during, max(each) - min(each), goal,
        at_most=goal is not None,
    )  # fmt: skip


def is_quiet(found: Sequence[Ratio]) -> bool:
    """Whether chance alone differs by less than what is to be found."""
    return all(1 / GOAL <= ratio.ratio <= GOAL for ratio in found if ratio.name.startswith("prompt"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--probes", type=int, default=PROBES)
    parser.add_argument("--pace", type=float, default=1.0, help="of the usual one: less on a slower machine")
    chosen = parser.parse_args()
    pace = Pace(chosen.pace)
    if pace.orders <= 2 * pace.threads / LATE_SECONDS:
        parser.error("--pace is so small that a late broker's orders could all be sent: nothing would wait")
    timed, stalls = measure(chosen.rounds, chosen.probes, pace)
    found = ratios(timed)
    counted = ", ".join(f"{phase} {of.counted(chosen.probes)}" for phase, of in timed.items())
    notes = (
        f"{2 * ACCOUNTS} accounts of two organizations with {pace.orders:g} orders a second, at random moments, at a "
        f"broker that answers at once (before, and `prompt`), {LATE_SECONDS:g} s late (`late`), never (`silent`), or "
        f"ends every connection (`away`), in {chosen.rounds} rounds. {chosen.probes} market orders of one of the two "
        f"at the paper broker, {pace.probes:g} a second, before each phase and in it, from when each was due until its "
        "fill was recorded; percentiles are of all rounds together, the spread is that of the rounds' own ratios. A "
        "broker that is silent or away takes no orders, which relieves the processors of them. Orders that no stall of "
        f"a processor met count, before and in it: {counted}; {stalls} stalls were seen."
    )
    if not is_quiet(found):
        print(*found, notes, sep="\n")
        raise SystemExit("bench: the phase in which nothing changes differs by more than a bad broker may: not quiet")
    if (chosen.rounds, chosen.probes) == (ROUNDS, PROBES):
        command = "make bench NAME=" + ("late_broker" if pace.share == 1 else f'"late_broker --pace {pace.share:g}"')
        report("Late broker", found, versions=("python",), command=command, notes=notes)
    else:
        print(*found, notes, sep="\n")


if __name__ == "__main__":
    main()
