"""One tenant attacks, another trades: how much slower is it, by its own unloaded figures of the same run?"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from attack_crowd import Crowd
from attack_findings import Findings
from attack_http import HttpConnection, written
from attack_latency import ACCEPTED, Latencies, measured
from attack_load import Attack, batches, invented_keys, verifications
from attack_options import Size
from attack_platform import Platform
from attack_streams import fill
from attack_tenants import Builder, Tenant, bearer, create, keyed

PART = "fairness"
WORST_RATIO = 3.0
FILL_S = 5.0
SETTLE_S = 1.5
ACCOUNTS, ORDERS = 6, 100
FEW_SAMPLES = 15
QUIET_FILLS = 10
LONG_S, SHORT_S = 120.0, 6.0
QUICK = ("batches on 20 connections", "invented keys on 64 connections")
"""What the small size does: what leaves little behind."""


def run(platform: Platform, builder: Builder, size: Size, seed: int, case: str | None, findings: Findings) -> None:
    quiet, loud = builder.tenant("quiet"), builder.tenant("loud", trades=False)
    samples, within_s = (size.samples, LONG_S) if size.samples else (FEW_SAMPLES, SHORT_S)
    attacks = {
        "batches on 20 connections": lambda: _sent(batches(platform.web, loud)),
        "verify on 20 connections": lambda: _sent(verifications(platform.web, builder, loud)),
        "invented keys on 64 connections": lambda: _sent(invented_keys(platform.web)),
        "streams": lambda: _crowd(platform, builder, size.streams, findings),
        "orders whose answer never comes": lambda: _timeouts(builder, loud),
    }
    calm = measured(platform.web, quiet, samples, within_s)
    findings.note("p99 without load, ms", calm.shown())
    for name, attack in attacks.items():
        if case == name or (case is None and (size.samples or name in QUICK)):
            with attack():
                time.sleep(SETTLE_S)
                under = measured(platform.web, quiet, samples, within_s)
                fills = [_seconds_to_fill(builder, quiet) for _ in range(QUIET_FILLS if size.samples else 0)]
            _compare(name, calm, under, max(fills, default=0.0), size.samples > 0, findings)
            if size.samples:
                _until_calm(platform, builder, quiet)


def _compare(name: str, calm: Latencies, under: Latencies, fill_s: float, timed: bool, findings: Findings) -> None:
    findings.note(f"p99 under {name}, ms", under.shown())
    findings.note(f"slowest fill under {name}, s", round(fill_s, 2))
    for kind, statuses in under.statuses.items():
        if bad := [status for status in statuses if status not in ACCEPTED]:
            detail = f"{len(bad)} of {len(statuses)}: {sorted(set(bad))}"
            findings.add(PART, f"another tenant's {kind} is refused under attack", name, detail)
    if not timed:
        return
    for kind in under.seconds:
        ratio = under.p99(kind) / calm.p99(kind)
        if ratio > WORST_RATIO:
            detail = f"{ratio:.1f} times, {1000 * calm.p99(kind):.0f} ms and {1000 * under.p99(kind):.0f} ms"
            findings.add(PART, f"another tenant's {kind} is slowed down too much", name, detail)
    if fill_s > FILL_S:
        findings.add(PART, "another tenant's order is filled too late", name, f"{fill_s:.1f} s")


@contextmanager
def _sent(attack: Attack) -> Iterator[None]:
    attack.start()
    try:
        yield
    finally:
        attack.stop()


@contextmanager
def _crowd(platform: Platform, builder: Builder, streams: int, findings: Findings) -> Iterator[None]:
    crowd = Crowd(platform.events)
    try:
        fill(crowd, builder, streams, findings)
        yield
    finally:
        crowd.close()


@contextmanager
def _timeouts(builder: Builder, loud: Tenant) -> Iterator[None]:
    """Six accounts of one tenant with a hundred orders each that the broker takes and never answers."""
    key, admin = keyed(loud.api_keys["paper"]), bearer(loud.tokens["admin"])
    body = {"commands": [create("SIM.TIMEOUT_AFTER_ACCEPT")["command"]] * ORDERS}
    for number in range(ACCOUNTS):
        account = {"name": f"hanging {number}", "broker": "paper", "environment": "paper"}
        made = builder.call("POST", "/v1/accounts", admin, account)["id"]
        builder.answer("POST", f"/v1/accounts/{made}/intents/batch", key, body)
    yield


def _seconds_to_fill(builder: Builder, quiet: Tenant) -> float:
    key, path = keyed(quiet.api_keys["paper"]), f"/v1/accounts/{quiet.accounts['paper']}/intents"
    payload = {"symbol": "AAPL", "order_side": "BUY", "spec": {"Market": {"quantity": "1"}}}
    began = time.monotonic()
    answer = builder.answer("POST", path, key, {"command": {"type": "CREATE", "payload": payload}})
    if answer.status != 201:
        return float("inf")
    intent = f"{path}/{answer.json()['intent_id']}"
    while time.monotonic() - began < 60:
        if builder.call("GET", intent, key)["state"]["status"] == "FILLED":
            break
        time.sleep(0.05)
    return time.monotonic() - began


def _until_calm(platform: Platform, builder: Builder, quiet: Tenant) -> None:
    """Until what the last attack left behind is worked off, or a minute has passed."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        began = time.monotonic()
        with HttpConnection(platform.web) as http:
            http.exchange(written("GET", "/v1/accounts", keyed(quiet.api_keys["paper"])))
        if time.monotonic() - began < 0.1 and _seconds_to_fill(builder, quiet) < 2:
            return
        time.sleep(0.5)
