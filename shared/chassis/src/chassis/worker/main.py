"""The start of every worker process: `python -m <service>.worker <job>`."""

import sys
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, NamedTuple

from chassis import health, process
from chassis.config import EXIT_BAD_CONFIGURATION, stop_on_bad_configuration


class Prepared(NamedTuple):
    """A process that is configured and not yet running."""

    loop: Callable[[Event], None]
    ready: health.Ready | None = None


class Job(NamedTuple):
    """One kind of process: the settings it reads, and how it is made of them and its name."""

    config: Any
    prepare: Callable[[Any, str], Prepared]


def main(service: str, jobs: Mapping[str, Job]) -> None:
    """Run the job that the command line names; an unknown one ends with 2 and the list of those there are."""
    wanted = sys.argv[1] if len(sys.argv) == 2 else ""
    if wanted not in jobs:
        sys.stderr.write(f"usage: python -m {service}.worker {{{'|'.join(jobs)}}}\n")
        sys.exit(EXIT_BAD_CONFIGURATION)
    name = f"{service}-{wanted}"
    with stop_on_bad_configuration(name):
        config = jobs[wanted].config.from_env()
        prepared = jobs[wanted].prepare(config, name)
    process.run(name, prepared.loop, log_format=config.log_format, level=config.log_level, ready=prepared.ready)
