"""How many files this process may have open, and so how many connections, and how many streams fit into that."""

import resource
from dataclasses import replace

from chassis import logs
from stream_gateway.config import Config

log = logs.get(__name__)

_FEWEST_SPARE = 100
"""Databases, queues, listeners, probes."""
_SPARE_SHARE = 8
"""One file in so many is not for streams: callers that wait to be let in, or to be refused, have connections, too."""
_MACOS_FILES = 10_240
"""What macOS grants: it reports a higher hard limit, and refuses to raise the soft one to it."""


def fit(config: Config) -> Config:
    """Raise the limit of open files, and lower the limits of streams to what it holds.

    An organization keeps its share of the process, so that it still cannot take all of it.
    """
    files = _raise_limit()
    room = max(1, files - max(_FEWEST_SPARE, files // _SPARE_SHARE))
    if files == resource.RLIM_INFINITY or config.streams_per_process <= room:
        return config
    share = max(1, config.streams_per_organization * room // config.streams_per_process)
    log.warning("too_few_open_files", open_files=files, streams_per_process=room, streams_per_organization=share)
    return replace(config, streams_per_process=room, streams_per_organization=share)


def _raise_limit() -> int:
    """To the hard one; how many files that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, max(soft, _MACOS_FILES)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (ValueError, OSError):
            continue
        return limit
    return soft
