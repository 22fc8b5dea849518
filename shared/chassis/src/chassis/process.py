"""A worker process: configured or stopped with one line, ended cleanly by a signal, watched over a small port."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from chassis import config, health, logs

log = logs.get(__name__)


def run(
    name: str,
    loop: Callable[[threading.Event], None],
    *,
    log_format: str = "auto",
    level: str = "info",
    ready: health.Ready | None = None,
) -> None:
    """Run the loop until SIGTERM or SIGINT. HEALTH_PORT, when set, serves health and metrics.

    Live means that every loop that polls `stop` still turns; ready is what `ready` says, else the same.
    """
    logs.configure(name, log_format=log_format, level=level)
    with config.stop_on_bad_configuration(name):
        stop = health.StopSignal(_longest_turn())

    def request_stop(_signal: int, _frame: FrameType | None) -> None:
        # From a thread: a handler interrupts the main thread, which may hold the very lock that `set` takes.
        threading.Thread(target=stop.set, name="stop").start()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    with config.stop_on_bad_configuration(name):
        _serve_health(stop, ready or stop.report)
    log.info("started", pid=os.getpid())
    gc.freeze()  # what is loaded by now stays: the collector need not go through it again and again
    loop(stop)
    log.info("stopped")
    sys.exit(0)


def _longest_turn() -> float:
    text = os.environ.get("HEALTH_TURN_SECONDS", "").strip()
    try:
        seconds = float(text) if text else health.LONGEST_TURN_SECONDS
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise config.BadConfiguration("HEALTH_TURN_SECONDS: must be a number above zero")
    return seconds


def _serve_health(stop: health.StopSignal, ready: health.Ready) -> None:
    port = os.environ.get("HEALTH_PORT", "").strip()
    if not port:
        return
    if not port.isdigit():
        raise config.BadConfiguration("HEALTH_PORT: must be a number")
    health.serve(os.environ.get("HEALTH_HOST", "127.0.0.1"), int(port), stop, ready)
