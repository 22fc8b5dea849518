"""What the Python SDK costs beside a bare httpx loop with the same requests: `make bench NAME=sdk`.

On a whole platform of its own, one caller, one request at a time. BENCH_QUICK=1 is a trial with few requests.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

import tip_client as tip
from bench.harness import Ratio, pairs, report
from bench.local_platform import platform

REQUESTS = 30 if os.environ.get("BENCH_QUICK") else 500
PAIRS = 2 if os.environ.get("BENCH_QUICK") else 5
WARM_UP = 20
GOAL = 1.3
ORDER = tip.Limit("SIM.OPEN", "BUY", 1, limit="1.00")
BODY = {"command": {"type": "CREATE", "payload": ORDER.to_json()}}


@dataclass(frozen=True)
class Caller:
    settings: tip.Settings

    @property
    def path(self) -> str:
        return f"/v1/accounts/{self.settings.account}/intents"

    @property
    def bare(self) -> dict[str, Any]:
        """What a bare client of httpx is made with."""
        return {"base_url": self.settings.url, "headers": self.settings.headers()}


def milliseconds(clock: Callable[[], float], request: Callable[[], object]) -> float:
    """Of one request, on average."""
    for _ in range(WARM_UP):
        request()
    began = clock()
    for _ in range(REQUESTS):
        request()
    return 1000 * (clock() - began) / REQUESTS


def compared(caller: Caller, clock: Callable[[], float], what: str, goal: float | None) -> list[Ratio]:
    """A submit and a read, each with httpx alone and with the SDK."""
    with httpx.Client(**caller.bare) as bare, closing(tip.Client(settings=caller.settings)) as client:
        read = client.submit(ORDER).intent_id

        def bare_submit() -> object:
            return bare.post(caller.path, json=BODY, headers={"idempotency-key": str(uuid4())}).json()

        def bare_read() -> object:
            return bare.get(f"{caller.path}/{read}").json()

        def measured(name: str, reference: Callable[[], object], subject: Callable[[], object]) -> Ratio:
            return pairs(
                f"{name}, {what}",
                lambda: milliseconds(clock, reference),
                lambda: milliseconds(clock, subject),
                unit="ms",
                count=PAIRS,
                goal=goal,
                at_most=True,
            )

        return [
            measured("submit", bare_submit, lambda: client.submit(ORDER)),
            measured("read of an order", bare_read, lambda: client.latest_action(read)),
        ]


def compared_async(caller: Caller) -> Ratio:
    """A submit in an event loop."""

    async def bare() -> float:
        async with httpx.AsyncClient(**caller.bare) as client:
            began = time.perf_counter()
            for _ in range(REQUESTS):
                (await client.post(caller.path, json=BODY, headers={"idempotency-key": str(uuid4())})).json()
            return 1000 * (time.perf_counter() - began) / REQUESTS

    async def subject() -> float:
        async with tip.AsyncClient(settings=caller.settings) as client:
            began = time.perf_counter()
            for _ in range(REQUESTS):
                await client.submit(ORDER)
            return 1000 * (time.perf_counter() - began) / REQUESTS

    return pairs(
        "submit, asynchronous, time",
        lambda: asyncio.run(bare()),
        lambda: asyncio.run(subject()),
        unit="ms",
        count=PAIRS,
        goal=GOAL,
        at_most=True,
    )


def main() -> None:
    with platform(BACKLOG_MAX_AGE_SECONDS="1000000") as running:
        found = running.local["organizations"]["acme"]
        key, account = found["api_keys"]["paper"], found["accounts"]["paper"]
        caller = Caller(tip.Settings(url=running.local["base_url"], key=key, account=account))
        ratios = [
            *compared(caller, time.perf_counter, "time", GOAL),
            *compared(caller, time.process_time, "processor time of the caller", None),
            compared_async(caller),
        ]
    report(
        "Python SDK",
        ratios,
        versions=("python", "httpx"),
        command="make bench NAME=sdk",
        notes="A request on average, one after the other; the platform is on the same cores.",
    )


if __name__ == "__main__":
    main()
