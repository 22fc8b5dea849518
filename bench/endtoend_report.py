"""The tables of `bench.endtoend`."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench.harness import machine

if TYPE_CHECKING:
    from bench.endtoend import Found

SHOWN_PROCESSES = 8
VERBS = ("inserted", "updated", "deleted")


def report(found: Sequence["Found"], pgbench: float | None) -> str:
    loads = [each for each in found if each.answered]
    idle = next((each for each in found if not each.answered), None)
    lines = [
        "## End to end", "", f"`make bench NAME=endtoend`, {datetime.now(UTC):%Y-%m-%d}, {machine()}", "",
        *(_idle(idle) if idle else ()), *_costs(loads, idle), "", *_latencies(loads), "", *_processes(loads),
    ]  # fmt: skip
    if pgbench:
        lines += ["", f"pgbench's transaction of a submit, 16 clients, before and after: {pgbench:,.0f} a second."]
    return "\n".join(lines) + "\n"


def _idle(idle: "Found") -> Iterator[str]:
    share = 100 * sum(idle.used.cpu_seconds.values()) / idle.seconds
    commits = idle.used.database["xact_commit"] / idle.seconds
    yield f"Idle: {share:.1f} % of a core, {commits:.1f} commits a second, {idle.memory_mib:,.0f} MiB."
    yield ""


def _costs(loads: Sequence["Found"], idle: "Found | None") -> Iterator[str]:
    yield (
        "| load | answered /s | filled /s | waiting at its end | pushed back | CPU ms per order "
        "| commits above idle per order | rows inserted, updated, deleted per order | MiB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for each in loads:
        database = each.used.database
        at_rest = idle.used.database["xact_commit"] / idle.seconds * each.seconds if idle else 0
        written = ", ".join(f"{database[f'tup_{verb}'] / each.answered:.1f}" for verb in VERBS)
        yield (
            f"| {each.phase.name} | {each.answered / each.seconds:,.0f} | {each.filled / each.seconds:,.0f} "
            f"| {each.waiting:,} | {each.pushed_back:,} "
            f"| {1000 * sum(each.used.cpu_seconds.values()) / each.answered:.1f} "
            f"| {(database['xact_commit'] - at_rest) / each.answered:.1f} | {written} | {each.memory_mib:,.0f} |"
        )


def _latencies(loads: Sequence["Found"]) -> Iterator[str]:
    yield "| load, ms p50 / p95 / p99 | request to answer | answered to accepted | to filled | to streamed |"
    yield "|---|---|---|---|---|"
    for each in loads:
        yield f"| {each.phase.name} | {' | '.join(_percentiles(values) for values in each.latencies.values())} |"


def _percentiles(values: Sequence[float]) -> str:
    ordered = sorted(values)
    if not ordered:
        return "-"
    return " / ".join(
        f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:,.1f}" for share in (0.5, 0.95, 0.99)
    )


def _processes(loads: Sequence["Found"]) -> Iterator[str]:
    names = [name for name, _ in loads[-1].used.cpu_seconds.most_common(SHOWN_PROCESSES)] if loads else []
    yield f"| CPU ms per order | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for each in loads:
        shares = (f"{1000 * each.used.cpu_seconds[name] / each.answered:.2f}" for name in names)
        yield f"| {each.phase.name} | {' | '.join(shares)} |"
