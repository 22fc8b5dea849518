"""What row-level security costs a submit: `python -m bench.submit_wall`, or `make bench NAME=submit_wall`.

Subject: intents as it runs, as the role `tip_intents_web`, saying with every transaction whom it serves. Reference: the
same code as the administrator, whom no policy holds, saying nothing. Both run at once and are loaded in turn.
Two figures: submits a second, which sways with whatever else the machine does, and the processor time of one submit in
web and Postgres together, which does not.
"""

import json
import os
import sys
from functools import partial
from typing import Any

from bench.closed_loop import requests_per_second
from bench.endtoend_cost import cpu_seconds, process_tree
from bench.harness import Ratio, pairs, report
from bench.submit_stage import Stage, stage

CONNECTIONS = (16, 64)
SECONDS = 4.0
ORDER = {"symbol": "AAPL", "order_side": "BUY", "spec": {"Limit": {"quantity": "10", "limit_price": "99.50"}}}


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


def measure(on: Stage, count: int) -> list[Ratio]:
    messages = submits(on)

    def rate(base: str, connections: int) -> float:
        return requests_per_second(base, messages, connections=connections, seconds=SECONDS, status=201)

    def cpu_ms(base: str, connections: int) -> float:
        before = cpu_of_children()
        submits = rate(base, connections) * SECONDS
        return 1000 * (cpu_of_children() - before) / submits

    found: list[Ratio] = []
    bare = on.intents("bench.submit_wall:create_front()", DATABASE_URL=on.admin_url)
    with on.intents() as walled, bare as open_:
        for base in (walled, open_):
            rate(base, 16)  # warm: connections, plans, caches
        for at in CONNECTIONS:
            name = f"submit, {at} connections / without row-level security"
            of = (partial(rate, open_, at), partial(rate, walled, at))
            found.append(pairs(name, *of, unit="/s", count=count, goal=0.95))
            of = (partial(cpu_ms, open_, at), partial(cpu_ms, walled, at))
            found.append(pairs(f"{name}, CPU", *of, unit="ms", count=count, goal=1.05, at_most=True))
    return found


def main() -> None:
    quick = "--quick" in sys.argv
    with stage() as on:
        found = measure(on, 2 if quick else 7)
    if quick:
        for ratio in found:
            print(f"{ratio.name}: {ratio.reference:,.0f} -> {ratio.subject:,.0f} {ratio.unit}, {ratio.ratio:.2f}")
        return
    report(
        "Row-level security",
        found,
        versions=("python", "flask", "gunicorn", "psycopg2-binary"),
        command="make bench NAME=submit_wall",
        notes="Durable Postgres, 256 live accounts of one organization; two gunicorn workers each.",
    )


if __name__ == "__main__":
    main()
