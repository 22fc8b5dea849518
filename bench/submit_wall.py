"""What row-level security costs a submit: `python -m bench.submit_wall`, or `make bench NAME=submit_wall`.

Subject: intents as it runs, as the role `tip_intents_web`, saying with every transaction whom it serves. Reference: the
same code as the administrator, whom no policy holds, saying nothing. Both run at once and are loaded in turn.
Two figures: submits a second, and the processor time of one submit in web and Postgres together. A machine whose speed
changes from second to second sways both by a third, so the slices are short and many, and what is claimed is the ratio
of their sums: the spread is the width of its 95 % interval (bootstrap over pairs of slices).
"""

import json
import os
import random
import sys
from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any, NamedTuple

from bench.closed_loop import answers
from bench.endtoend_cost import cpu_seconds, process_tree
from bench.harness import Ratio, percentile, report, undisturbed
from bench.submit_stage import Stage, stage

CONNECTIONS = (16, 64)
SLICE_SECONDS, SLICES = 1.0, 120
RESAMPLES = 2_000
ORDER = {"symbol": "AAPL", "order_side": "BUY", "spec": {"Limit": {"quantity": "10", "limit_price": "99.50"}}}


class Slice(NamedTuple):
    submits: int
    seconds: float
    cpu_ms: float


def create_front() -> Any:
    """intents without the wall."""
    from chassis import tenancy
    from intents.app import create_front

    tenancy.scope = lambda: None
    return create_front()


def submits(on: Stage) -> list[bytes]:
    """A limit order on each of the accounts."""
    body = json.dumps({"command": {"type": "CREATE", "payload": ORDER}})
    headers = f"Host: bench\r\nx-api-key: {on.api_key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return [f"POST /v1/accounts/{of}/intents HTTP/1.1\r\n{headers}\r\n\r\n{body}".encode() for of in on.accounts]


def cpu_of_children() -> float:
    """Of Postgres, Valkey and the web processes, without this one, which makes the load."""
    return sum(cpu_seconds(pid) for pid in process_tree(os.getpid()) if pid != os.getpid())


def sliced(base: str, messages: Sequence[bytes], connections: int) -> Slice:
    before = cpu_of_children()
    accepted = answers(base, messages, connections=connections, seconds=SLICE_SECONDS, status=201)
    return Slice(*accepted, 1000 * (cpu_of_children() - before))


def in_turn(bases: Sequence[str], messages: Sequence[bytes], connections: int) -> dict[str, Slice]:
    return {base: sliced(base, messages, connections) for base in bases}


def measure(on: Stage, count: int) -> list[Ratio]:
    messages = submits(on)
    found: list[Ratio] = []
    bare = on.intents("bench.submit_wall:create_front()", DATABASE_URL=on.admin_url)
    with on.intents() as walled, bare as open_:
        for base in (walled, open_):
            for _ in range(5):
                sliced(base, messages, 16)  # warm: connections, plans, caches
        for connections in CONNECTIONS:
            orders = islice(cycle(((open_, walled), (walled, open_))), count)
            slices = [undisturbed(partial(in_turn, bases, messages, connections)) for bases in orders]
            pairs = [(of[open_], of[walled]) for of in slices]
            found += ratios(f"submit, {connections} connections / without row-level security", pairs)
            print(*found[-2:], sep="\n", flush=True)
    return found


def ratios(name: str, pairs: Sequence[tuple[Slice, Slice]]) -> list[Ratio]:
    dice = random.Random(1)
    drawn = [
        tuple(map(_ratio, zip(*figures(dice.choices(pairs, k=len(pairs))), strict=True))) for _ in range(RESAMPLES)
    ]
    rate, cpu = zip(*figures(pairs), strict=True)
    spreads = [percentile(each, 0.975) - percentile(each, 0.025) for each in zip(*drawn, strict=True)]
    return [
        Ratio(name, "/s", *rate, spreads[0], 0.95),
        Ratio(f"{name}, CPU", "ms", *cpu, spreads[1], 1.05, at_most=True),
    ]


def figures(pairs: Sequence[tuple[Slice, Slice]]) -> list[tuple[float, float]]:
    """Of reference and subject: submits a second, and milliseconds of processor for each."""
    return [
        (sum(of.submits for of in side) / sum(of.seconds for of in side),
         sum(of.cpu_ms for of in side) / sum(of.submits for of in side))
        for side in zip(*pairs, strict=True)
    ]  # fmt: skip


def _ratio(of: tuple[float, float]) -> float:
    reference, subject = of
    return subject / reference


def main() -> None:
    quick = "--quick" in sys.argv
    with stage() as on:
        found = measure(on, 5 if quick else SLICES)
    if quick:
        for ratio in found:
            print(f"{ratio.name}: {ratio.reference:,.1f} -> {ratio.subject:,.1f} {ratio.unit}, {ratio.ratio:.2f}")
        return
    report(
        "Row-level security",
        found,
        versions=("python", "flask", "gunicorn", "psycopg2-binary"),
        command="make bench NAME=submit_wall",
        notes=(
            "Durable Postgres, 256 live accounts of one organization; two gunicorn workers each. "
            f"{SLICES} pairs of slices of {SLICE_SECONDS:g} s; the ratio is that of their sums, the spread the width "
            "of its 95 % interval."
        ),
    )


if __name__ == "__main__":
    main()
