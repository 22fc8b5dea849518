"""Prometheus metrics, correct with many processes when PROMETHEUS_MULTIPROC_DIR is set."""

import os

from prometheus_client import REGISTRY as IN_PROCESS
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

REQUESTS = Counter("tip_http_requests_total", "Requests answered.", ["service", "method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "tip_http_request_seconds",
    "Time to answer.",
    ["service", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
REFUSED_CREDENTIALS = Counter("tip_refused_credentials_total", "Requests without a valid credential.")
RATE_LIMITED = Counter("tip_rate_limited_total", "Requests refused by the rate limit.")
RATE_LIMIT_UNAVAILABLE = Counter(
    "tip_rate_limit_unavailable_total", "Requests passed uncounted because Redis was down."
)
OUTBOX_SETTLED = Counter("tip_outbox_settled_total", "Outbox rows settled.", ["service", "event_type", "result"])
OUTBOX_ROWS = Gauge("tip_outbox_rows", "Outbox rows by status.", ["service", "status"], multiprocess_mode="mostrecent")
TASK_RUNS = Counter("tip_task_runs_total", "Runs of periodic tasks.", ["process", "task", "result"])
OUTBOX_OLDEST_PENDING_SECONDS = Gauge(
    "tip_outbox_oldest_pending_seconds", "Age of the oldest waiting row.", ["service"], multiprocess_mode="mostrecent"
)


def exposition() -> bytes:
    """All metrics of this service's processes as Prometheus reads them."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(IN_PROCESS)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry)
