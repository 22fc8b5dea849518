"""What one tenant or a stranger does to another tenant: `python -m bench.fairness_web`, `make bench NAME=fairness_web`.

The quiet tenant reads, submits and writes a control, one after the other, and times each: unloaded (the reference) and
during each attack (the subject), in alternating pairs. The attacks are batches of a hundred commands on 20 connections,
20 parallel verifications of a long log, lists of 500 rows on 20 connections, and invented well-formed keys on 64. The
loud tenant has twenty keys, so that no quota of a single key ends the attack. The web is that of `make up`: two
processes, the usual quota. `--quick` runs one short pair each.
"""

import http.client
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import NullPool, create_engine

from bench.flood import flood, request
from bench.harness import Ratio, percentile, report
from bench.submit_stage import Stage, stage
from chassis import db, keys, migrations
from chassis.services import WEB_SERVICES
from tip_local.identity_seed import add_account
from tip_local.processes import free_port
from tip_testing.commands import batch, limit
from tip_testing.identity_fixtures import IdentityFixtures

KINDS = ("read", "submit", "control write")
LOG_BATCHES = 60
GOAL = 3.0
ORDER = limit("AAPL", "1", "9")
BATCH = json.dumps(batch(*[ORDER] * 100))


@dataclass(frozen=True)
class Tenant:
    account: UUID
    keys: tuple[str, ...]

    @property
    def intents(self) -> str:
        return f"/v1/accounts/{self.account}/intents"

    def requests(self, method: str, path: str, body: str = "") -> list[bytes]:
        """The same with each of the keys."""
        return [request(method, self.intents + path, body, x_api_key=key) for key in self.keys]


Attack = tuple[str, int, Sequence[bytes]]


def attacks(loud: Tenant) -> list[Attack]:
    strangers = [request("GET", loud.intents, x_api_key=keys.generate("live")) for _ in range(5_000)]
    return [
        ("20 connections of batches", 20, loud.requests("POST", "/batch", BATCH)),
        ("20 parallel verifications", 20, loud.requests("GET", "/verify")),
        ("20 connections of long lists", 20, loud.requests("GET", "?limit=500")),
        ("64 connections with invented keys", 64, strangers),
    ]


Latencies = dict[str, list[float]]


class Probe:
    """The quiet tenant, one request after the other."""

    def __init__(self, port: int, tenant: Tenant) -> None:
        self._port = port
        headers = {"x-api-key": tenant.keys[0], "Content-Type": "application/json"}
        control = f"/v1/controls/accounts/{tenant.account}/symbols/MSFT"
        self._requests = {
            "read": ("GET", tenant.intents, None, headers),
            "submit": ("POST", tenant.intents, json.dumps(ORDER), headers),
            "control write": ("PUT", control, json.dumps({"manually_disabled": False}), headers),
        }
        self.refused = 0

    def measure(self, seconds: float) -> Latencies:
        """Milliseconds of each request. A new connection every time around, so that both processes are met."""
        found: Latencies = {kind: [] for kind in KINDS}
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            connection.connect()
            for kind in KINDS:
                began = time.perf_counter()
                connection.request(*self._requests[kind])
                answer = connection.getresponse()
                answer.read()
                found[kind].append((time.perf_counter() - began) * 1000)
                self.refused += answer.status >= 400
            connection.close()
            time.sleep(0.02)  # below its own quota
        return found


def compare(probe: Probe, port: int, attack: Attack, count: int, seconds: float) -> list[Ratio]:
    name, connections, requests = attack
    runs: dict[bool, list[Latencies]] = {False: [], True: []}
    for _ in range(count):
        for loaded in (False, True):
            with flood(port, connections, requests) if loaded else nullcontext() as answers:
                if loaded:
                    time.sleep(1.0)
                runs[loaded].append(probe.measure(seconds))
        print(f"  {name}: {dict(answers or {})}")
    return [
        _ratio(f"{kind}, {name}, {label}", runs, kind, lambda values, part=part: percentile(values, part))  # type: ignore[misc]
        for kind in KINDS
        for label, part in (("p50", 0.5), ("p99", 0.99))
    ]


def _ratio(
    name: str, runs: dict[bool, list[Latencies]], kind: str, summary: Callable[[Sequence[float]], float]
) -> Ratio:
    before, during = ([summary(run[kind]) for run in runs[loaded]] for loaded in (False, True))
    ratios = [during_run / before_run for during_run, before_run in zip(during, before, strict=True)]
    middle = statistics.median(before), statistics.median(during)
    return Ratio(name, "ms", *middle, max(ratios) - min(ratios), GOAL, at_most=True)


def tenants(on: Stage) -> list[Tenant]:
    """The quiet one and the loud one."""
    identity = IdentityFixtures({**on.environment, **_scoped(on), "DATABASE_URL": on.admin_url})
    engine = create_engine(db.with_driver(on.admin_url), poolclass=NullPool)
    made = []
    for count in (1, 20):
        organization = identity.organization(entitlements=("trading_live", "controls_premium"))
        with engine.begin() as connection:
            account = add_account(connection, organization.id, "live")
        made.append(Tenant(account, tuple(identity.key(organization.id, "live") for _ in range(count))))
    identity.close()
    return made


def _scoped(on: Stage) -> dict[str, str]:
    return {f"{service.upper()}_DATABASE_URL": on.url_of(migrations.web_name(service)) for service in WEB_SERVICES}


def fill(on: Stage, tenant: Tenant) -> None:
    """A log worth verifying, made where there is no quota."""
    with on.intents() as base:
        connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=60)
        headers = {"x-api-key": tenant.keys[0], "Content-Type": "application/json"}
        for _ in range(LOG_BATCHES):
            connection.request("POST", f"{tenant.intents}/batch", BATCH, headers)
            if connection.getresponse().read().count(b'"action"') != 100:
                sys.exit("bench: a batch was not accepted")
        connection.close()


def main() -> None:
    quick = "--quick" in sys.argv
    count, seconds = (1, 6.0) if quick else (3, 8.0)
    port, found = free_port(), list[Ratio]()
    options = ["-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "--bind", f"127.0.0.1:{port}"]
    with stage() as on:
        quiet, loud = tenants(on)
        fill(on, loud)
        environment = {**_scoped(on), "RATE_LIMIT_PER_MINUTE": "6000"}
        with on.web("web", [*options, "tip_local.web:create_front()"], port, **environment):
            probe = Probe(port, quiet)
            probe.measure(2.0)  # warm: connections, plans, caches
            for attack in attacks(loud):
                found += compare(probe, port, attack, count, seconds)
    print(f"the quiet tenant was refused {probe.refused} times")
    if quick:
        for row in found:
            print(f"{row.name}: {row.reference:,.1f} -> {row.subject:,.1f} {row.unit}, {row.ratio:.2f} {row.met}")
        return
    report(
        "Fairness between tenants, web",
        found,
        versions=("python", "flask", "gunicorn", "psycopg2-binary"),
        command="make bench NAME=fairness_web",
        notes="Unloaded, and during the attack; two gunicorn workers of eight threads. Attacks use the same cores.",
    )


if __name__ == "__main__":
    main()
