"""What execution counts."""

from prometheus_client import Counter, Gauge, Histogram

CLAIMED = Counter("tip_execution_claimed_total", "Commands claimed.")
VERDICTS = Counter("tip_execution_verdicts_total", "What became of them.", ["type", "verdict"])
RECORDED = Counter("tip_execution_recorded_total", "Results and reports written.")
LEASES_LOST = Counter("tip_execution_leases_lost_total", "Results that came after another executor had taken over.")
LEASES_RELEASED = Counter("tip_execution_leases_released_total", "Leases of executors that had died, ended early.")
CALL_SECONDS = Histogram(
    "tip_broker_call_seconds",
    "Time a broker took to carry out a command.",
    ["broker"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
CIRCUIT = Gauge(
    "tip_broker_circuit",
    "The circuit that all organizations share: 0 closed, 1 half open, 2 open.",
    ["broker", "environment"],
    multiprocess_mode="mostrecent",
)
CIRCUITS_OF_ORGANIZATIONS = Gauge(
    "tip_broker_organization_circuits",
    "Organizations whose own circuit is open.",
    ["broker", "environment"],
    multiprocess_mode="mostrecent",
)
STREAMS = Gauge("tip_broker_streams", "Accounts whose updates are received.", multiprocess_mode="livesum")
BACKLOG_SECONDS = Gauge(
    "tip_backlog_seconds",
    "For how long the oldest command that no executor has taken has been due.",
    multiprocess_mode="mostrecent",
)
BROKER_BACKLOG_SECONDS = Gauge(
    "tip_broker_backlog_seconds",
    "The same of each broker.",
    ["broker", "environment"],
    multiprocess_mode="mostrecent",
)
OVERLOADS = Gauge(
    "tip_overloads",
    "Accounts, and organizations at a broker, whose orders are refused because others wait too long.",
    multiprocess_mode="mostrecent",
)
RECONCILIATIONS = Counter("tip_reconciliations_total", "Accounts compared with their broker.", ["result"])
GROUP_OVERFILLS = Counter("tip_group_overfills_total", "Order groups of which more was filled than they were for.")
