"""The start of every worker process: `python -m <service>.worker <job>`, or several jobs that share a process."""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Event
from typing import Any, NamedTuple

from chassis import health, process
from chassis.config import EXIT_BAD_CONFIGURATION, stop_on_bad_configuration
from chassis.worker.together import run_together


class Prepared(NamedTuple):
    """A job that is configured and not yet running."""

    loop: Callable[[Event], None]
    ready: health.Ready | None = None


class Job(NamedTuple):
    """One kind of work: the settings it reads, and how it is made of them and its name."""

    config: Any
    prepare: Callable[[Any, str], Prepared]


def main(service: str, jobs: Mapping[str, Job]) -> None:
    """Run the jobs that the command line names; an unknown one ends with 2 and the list of those there are."""
    wanted = sys.argv[1:]
    if not wanted or len(jobs.keys() & wanted) < len(wanted):
        sys.stderr.write(f"usage: python -m {service}.worker {{{'|'.join(jobs)}}} ...\n")
        sys.exit(EXIT_BAD_CONFIGURATION)
    name = f"{service}-{wanted[0]}" if len(wanted) == 1 else f"{service}-workers"
    with stop_on_bad_configuration(name):
        configs = {f"{service}-{job}": (jobs[job], jobs[job].config.from_env()) for job in wanted}
        prepared = {job_name: job.prepare(config, job_name) for job_name, (job, config) in configs.items()}
    [(_, config), *_] = configs.values()
    _run(name, prepared, log_format=config.log_format, level=config.log_level)


def _run(name: str, prepared: Mapping[str, Prepared], *, log_format: str, level: str) -> None:
    loops = {job_name: job.loop for job_name, job in prepared.items()}
    loop = loops[name] if name in loops else partial(run_together, loops)
    process.run(name, loop, log_format=log_format, level=level, ready=_ready(prepared.values()))


def _ready(prepared: Iterable[Prepared]) -> health.Ready | None:
    """All that the jobs say about it."""
    checks = [job.ready for job in prepared if job.ready]
    if len(checks) < 2:
        return checks[0] if checks else None

    def ready() -> health.Report:
        reports = [check() for check in checks]
        facts = {name: fact for report in reports for name, fact in report.facts.items()}
        return health.Report(all(report.healthy for report in reports), facts)

    return ready
