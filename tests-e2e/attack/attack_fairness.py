"""One tenant attacks, another trades: how much slower is it, by its own unloaded figures of the same run?"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context

from attack_crowd import CrowdApart
from attack_findings import Findings
from attack_flood import APART
from attack_http import HttpConnection, written
from attack_latency import ACCEPTED, Latencies, Probe
from attack_load import (
    Attack,
    accepted_batch,
    batches,
    invented_keys,
    loud_keys,
    stream_openings,
    verifications,
)
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_streams import fill
from attack_tenants import Builder, Tenant, bearer, create, keyed

from tip_testing.commands import create as market

PART = "fairness"
WORST_RATIO = 3.0
FILL_S = 5.0
SETTLE_S = 1.5
ACCOUNTS = 6
FEW_SAMPLES = 25
ENOUGH = 300
"""Samples of each kind from which on a p99 is one."""
QUIET_FILLS = 10
LONG_S, SHORT_S = 150.0, 10.0
ANSWERED_S = 6.0
"""By then every connection of an attack was answered once: whoever waits for a thread is refused after five seconds."""
QUICK = ("batches on 20 connections",)
"""What the small size does: each load takes all processors for ten seconds, and suites of their own (chassis test_asgi,
test_fair_queue) hold one tenant against another, and strangers against both."""
Load = Callable[[], AbstractContextManager[Attack | None]]


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    loads: dict[str, Load] = {
        "batches on 20 connections": lambda: _sent(batches(platform, builder)),
        "verify on 20 connections": lambda: _sent(verifications(platform, builder)),
        "invented keys on 64 connections": lambda: _sent(invented_keys(platform)),
        "stream openings on 64 connections": lambda: _sent(stream_openings(platform, builder)),
        "streams": lambda: _crowd(platform, builder, size.streams, findings),
        "orders whose answer never comes": lambda: _timeouts(builder),
    }
    chosen = [name for name in loads if findings.chosen(name) and (findings.only or size.samples or name in QUICK)]
    if not chosen:
        return
    quiet = builder.tenant("quiet")
    probe = Probe.of(platform, builder, quiet)
    samples, within_s = (size.samples, LONG_S) if size.samples else (FEW_SAMPLES, SHORT_S)
    for number, name in enumerate(chosen, 1):
        calm = probe.measured(samples, within_s)  # anew for each: the machine is not as fast in every minute
        findings.note(f"p99 before {name}, ms", calm.shown())
        with loads[name]() as attack:
            began = time.monotonic()
            time.sleep(SETTLE_S)
            under = probe.measured(samples, within_s, ANSWERED_S)
            ended = time.monotonic()
            fills = [_seconds_to_fill(builder, quiet) for _ in range(QUIET_FILLS if size.samples else 0)]
        if attack is not None:
            judge_attack(name, attack, began, ended, findings)
        _compare(name, calm, under, max(fills, default=0.0), size.samples > 0, findings)
        progress.at(number, len(chosen))
        if size.samples:
            _until_calm(platform, builder, quiet)


def judge_attack(name: str, attack: Attack, began: float, ended: float, findings: Findings) -> None:
    """An attack that was refused for the most part has shown nothing."""
    answers = attack.answers(began, ended)
    findings.note(f"answers to {name} while measuring", dict(sorted(answers.items())))
    if not attack.took_place(answers):
        rule = "too few of the attack's requests were accepted while measuring"
        findings.add(PART, rule, name, str(dict(answers)))


def _compare(name: str, calm: Latencies, under: Latencies, fill_s: float, timed: bool, findings: Findings) -> None:
    findings.note(f"p99 under {name}, ms", under.shown())
    for kind, statuses in under.statuses.items():
        if bad := [status for status in statuses if status not in ACCEPTED]:
            detail = f"{len(bad)} of {len(statuses)}: {sorted(set(bad))}"
            findings.add(PART, f"another tenant's {kind} is refused under attack", name, detail)
    if not timed:
        return
    findings.note(f"slowest fill under {name}, s", round(fill_s, 2))
    findings.note(f"samples of each kind under {name}", under.fewest)
    if min(calm.fewest, under.fewest) < ENOUGH:
        findings.add(PART, "too few samples for a p99", name, f"{calm.fewest} and {under.fewest}, not {ENOUGH}")
    for kind in under.seconds:
        ratio = under.p99(kind) / calm.p99(kind)
        if ratio > WORST_RATIO:
            detail = f"{ratio:.1f} times, {1000 * calm.p99(kind):.0f} ms and {1000 * under.p99(kind):.0f} ms"
            findings.add(PART, f"another tenant's {kind} is slowed down too much", name, detail)
    if fill_s > FILL_S:
        findings.add(PART, "another tenant's order is filled too late", name, f"{fill_s:.1f} s")


@contextmanager
def _sent(attack: Attack) -> Iterator[Attack]:
    attack.start()
    try:
        yield attack
    finally:
        attack.stop()


@contextmanager
def _crowd(platform: Platform, builder: Builder, streams: int, findings: Findings) -> Iterator[None]:
    with CrowdApart(ctx=get_context("spawn")) as apart:
        crowd = apart.Crowd(platform.events, platform.stream_target, APART)
        progress = Progress()
        progress.begin("streams of the crowd")
        fill(crowd, builder, streams, PART, findings, progress)
        yield None
        crowd.close()


@contextmanager
def _timeouts(builder: Builder) -> Iterator[None]:
    """Six accounts of one tenant with a hundred orders each that the broker takes and never answers."""
    loud = builder.tenant("loud", trades=False)
    [key], admin = loud_keys(builder, loud, 1), bearer(loud.tokens["admin"])
    for number in range(ACCOUNTS):
        account = {"name": f"hanging {number}", "broker": "paper", "environment": "paper"}
        made = builder.call("POST", "/v1/accounts", admin, account)["id"]
        accepted_batch(builder, made, key, create("SIM.TIMEOUT_AFTER_ACCEPT")["command"])
    yield None


def _seconds_to_fill(builder: Builder, quiet: Tenant) -> float:
    key, path = keyed(quiet.api_keys["paper"]), f"/v1/accounts/{quiet.accounts['paper']}/intents"
    began = time.monotonic()
    answer = builder.answer("POST", path, key, market("AAPL", "1"))
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
