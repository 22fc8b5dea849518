"""The documents' pictures and the table of wake-ups show what runs."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from chassis import queues
from chassis.services import WEB_SERVICES
from intents.execution import executor
from tip_local.postgres import EmbeddedPostgres
from tip_local.process_table import PROCESSES
from tip_local.valkey import EmbeddedValkey

ROOT = Path(__file__).resolve().parents[3]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
NAMES = {re.sub(r"-\d+$", "", spec.name) for spec in PROCESSES}  # the second of a kind is in the picture once
WORKERS: dict[str, Any] = {service: import_module(f"{service}.worker") for service in WEB_SERVICES}
JOBS = {f"{service}-{job}" for service, worker in WORKERS.items() for job in worker.JOBS}
CONSUMERS = {service: worker for service, worker in WORKERS.items() if "consumer" in worker.JOBS}


class WakeUp(NamedTuple):
    """A row of the table."""

    publisher: str
    event_types: frozenset[str]
    queue: str
    wakes: str
    reads: str


def wake_ups() -> list[WakeUp]:
    section = ARCHITECTURE.split("## Who wakes whom\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (`.+?`) \| `(.+?)` \| (\S+) \| `(.+?)` \|$", section, re.M)
    return [WakeUp(first, frozenset(re.findall(r"`(.+?)`", types)), *rest) for first, types, *rest in rows]


def test_the_table_of_wake_ups_has_every_route_of_every_relay() -> None:
    shown = {(row.publisher, row.queue): row.event_types for row in wake_ups()}

    assert shown == {
        (service, queue): frozenset(types)
        for service, worker in WORKERS.items()
        for queue, types in worker.ROUTES.items()
    }
    assert [service for service, worker in WORKERS.items() if not worker.ROUTES] == ["identity"]
    assert "| identity | all | none | nobody | |" in ARCHITECTURE


def test_whoever_is_woken_exists_and_reads_what_woke_it() -> None:
    shown = {(row.queue, row.reads) for row in wake_ups()}

    assert shown == {
        (executor.QUEUE, "intents.intent"),
        *((worker.QUEUE, f"{source}_api.feed") for worker in CONSUMERS.values() for source in worker.SOURCES),
    }
    assert {row.wakes for row in wake_ups()} <= JOBS
    assert all(row.queue == queues.name(*row.wakes.split("-")) for row in wake_ups())


def test_only_consumers_in_the_table_may_read_a_feed() -> None:
    [grants] = ROOT.glob("shared/**/tests/grants.txt")
    readers = set(re.findall(r"^tip_(\w+): (\w+)_api\.feed: SELECT$", grants.read_text(), re.M))

    consumed = {(row.wakes.partition("-")[0], row.publisher) for row in wake_ups() if row.reads.endswith("_api.feed")}
    assert readers - {("identity", "identity")} == consumed


def flowchart() -> str:
    """The same in both documents."""
    [ours] = re.findall(r"```mermaid\n(flowchart .*?)```", ARCHITECTURE, re.S)
    [readme] = re.findall(r"```mermaid\n(flowchart .*?)```", (ROOT / "README.md").read_text(), re.S)
    assert ours == readme
    return str(ours)


def containers() -> set[str]:
    """Those that run once included."""
    return set(yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"])


def test_every_process_and_every_container_is_in_the_picture() -> None:
    started = containers() | NAMES | {EmbeddedPostgres.name, EmbeddedValkey.name}
    chart = flowchart()

    assert [name for name in sorted(started) if not re.search(rf"(?<![\w-]){name}(?![\w-])", chart)] == []


def test_the_drawing_of_the_manual_has_every_container_that_stays() -> None:
    drawing = (ROOT / "docs" / "manual" / "processes.svg").read_text()

    drawn = re.findall(r'class="process"[^>]*>([a-z-]+)<', drawing)
    assert sorted(drawn) == sorted(containers() - {"prepare", "migrate", "seed"})


def test_executor_and_reconciler_hang_on_postgres_and_the_queue_only_wakes() -> None:
    lines = [line.strip() for line in flowchart().splitlines()]
    ids = {label: name for line in lines for name, label in re.findall(r"(\w+)\[([\w-]+)\]", line)}
    solid = [re.findall(r"\w+", line) for line in lines if "<-->" in line and "pg" in line]
    at_the_queue = [line for line in lines if re.search(r"\bqueue\b", line)]

    assert all(any(ids[name] in ends for ends in solid) for name in ("intents-executor", "intents-reconciler"))
    assert len(at_the_queue) == 4 and all("-." in line for line in at_the_queue)
