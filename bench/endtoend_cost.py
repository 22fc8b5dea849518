"""What a platform uses: processor time by process, memory, and what its database did."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg2

from bench.local_platform import Platform

_TICKS = os.sysconf("SC_CLK_TCK")
_COUNTS = ("xact_commit", "tup_fetched", "tup_inserted", "tup_updated", "tup_deleted")


@dataclass(frozen=True)
class Usage:
    """Since the platform started; subtract an earlier one."""

    cpu_seconds: Counter[str]
    """By process; those that share a name but for a number are one."""
    database: Counter[str]

    def __sub__(self, earlier: Self) -> Self:
        return type(self)(
            _difference(self.cpu_seconds, earlier.cpu_seconds), _difference(self.database, earlier.database)
        )


def _difference(now: Counter[str], earlier: Counter[str]) -> Counter[str]:
    result = now.copy()
    result.subtract(earlier)
    return result


def usage(running: Platform, database_url: str) -> Usage:
    cpu: Counter[str] = Counter()
    for name, process in running.processes().items():
        cpu[name.removesuffix("-2")] += sum(cpu_seconds(pid) for pid in process_tree(process["pid"]))  # type: ignore[assignment]
    return Usage(cpu, database_counts(database_url))


def database_counts(database_url: str) -> Counter[str]:
    connection = psycopg2.connect(database_url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(_COUNTS)} FROM pg_stat_database WHERE datname = current_database()")
            [counts] = cursor.fetchall()
            return Counter(dict(zip(_COUNTS, counts, strict=True)))
    finally:
        connection.close()


def memory_mib(running: Platform) -> float:
    """Of all processes; what several share counts once."""
    pids = [pid for process in running.processes().values() for pid in process_tree(process["pid"])]
    return sum(_proportional_kib(pid) for pid in pids) / 1024


def _proportional_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def cpu_seconds(pid: int) -> float:
    """Its own and of those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / _TICKS


def process_tree(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from process_tree(child)


def _children(pid: int) -> Iterable[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return ()
