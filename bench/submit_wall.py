"""What row-level security costs a submit: `python -m bench.submit_wall`, or `make bench NAME=submit_wall`.

Subject: intents as it runs, as the role `tip_intents_web`, saying with every transaction whom it serves. Reference: the
same code as the administrator, whom no policy holds, saying nothing. Both run at once and are loaded in turn.
"""

import json
import sys
from typing import Any

from bench.closed_loop import requests_per_second
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


def measure(on: Stage, count: int) -> list[Ratio]:
    messages = submits(on)

    def load(base: str, connections: int) -> float:
        return requests_per_second(base, messages, connections=connections, seconds=SECONDS, status=201)

    found: list[Ratio] = []
    bare = on.intents("bench.submit_wall:create_front()", DATABASE_URL=on.admin_url)
    with on.intents() as walled, bare as open_:
        for base in (walled, open_):
            load(base, 16)  # warm: connections, plans, caches
        for connections in CONNECTIONS:

            def reference(at: int = connections) -> float:
                return load(open_, at)

            def subject(at: int = connections) -> float:
                return load(walled, at)

            name = f"submit, {connections} connections / without row-level security"
            found.append(pairs(name, reference, subject, unit="/s", count=count, goal=0.95))
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
