"""A worker process: configured or stopped with one line, ended cleanly by a signal, watched over a small port."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from prometheus_client import start_http_server

from chassis import config, logs

log = logs.get(__name__)


def run(name: str, loop: Callable[[threading.Event], None], *, log_format: str = "auto", level: str = "info") -> None:
    """Run the loop until SIGTERM or SIGINT. HEALTH_PORT, when set, serves metrics; answering at all means alive."""
    logs.configure(name, log_format=log_format, level=level)
    stop = threading.Event()

    def asked(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, asked)
    signal.signal(signal.SIGINT, asked)
    with config.stop_on_bad_configuration(name):
        _serve_metrics()
    log.info("started", pid=os.getpid())
    loop(stop)
    log.info("stopped")
    sys.exit(0)


def _serve_metrics() -> None:
    port = os.environ.get("HEALTH_PORT", "").strip()
    if not port:
        return
    if not port.isdigit():
        raise config.BadConfiguration("HEALTH_PORT: must be a number")
    start_http_server(int(port), addr=os.environ.get("HEALTH_HOST", "127.0.0.1"))
