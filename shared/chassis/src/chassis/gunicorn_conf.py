"""gunicorn's settings: `gunicorn -c python:chassis.gunicorn_conf 'identity.app:create_app()'`.

The same for every service.

Apps are created after the fork, so no connection is ever shared between workers.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from chassis.config import BadConfiguration, stop_on_bad_configuration


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 65_535:
        raise BadConfiguration(f"{variable}: must be a number from 1 to 65535")
    return int(text)


with stop_on_bad_configuration("web"):
    _settings = {
        "WEB_PORT": _number("WEB_PORT", 8080),
        "WEB_WORKERS": _number("WEB_WORKERS", 2),
        "WEB_THREADS": _number("WEB_THREADS", 8),
    }

bind = f"{os.environ.get('WEB_HOST', '127.0.0.1')}:{_settings['WEB_PORT']}"
workers = _settings["WEB_WORKERS"]
threads = _settings["WEB_THREADS"]
worker_class = "chassis.gunicorn_worker.Worker"
asgi_loop = "asyncio"  # whatever else is installed
http_parser = "python"  # the one that chassis.http_connection knows
timeout = 30
graceful_timeout = 8
keepalive = 30  # http_rules.IDLE_S; the arbiter need not load an app's libraries to know it
max_requests = 100_000
max_requests_jitter = 10_000
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - not on a disk # nosec B108
preload_app = False
control_socket_disable = True  # it would be a file beside the code, which may be read-only
errorlog = "-"
loglevel = "warning"
logger_class = "chassis.gunicorn_logs.QuietLogger"


def on_starting(_server: object) -> None:
    """A directory for the workers' counters, unless one is given: that is its giver's to empty before a start."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = made = tempfile.mkdtemp(prefix="tip-metrics-")
        atexit.register(_forget, made, os.getpid())


def _forget(directory: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a worker, which is a copy of the process that made it
        shutil.rmtree(directory, ignore_errors=True)


def child_exit(_server: object, worker: object) -> None:
    if "prometheus_client" in sys.modules:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)  # type: ignore[attr-defined]
