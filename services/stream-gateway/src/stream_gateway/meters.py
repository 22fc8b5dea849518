"""What the gateway counts."""

from prometheus_client import Counter, Gauge, Histogram

STREAMS = Gauge("tip_stream_subscribers", "Open streams.", ["transport"])
PENDING = Gauge("tip_stream_pending", "Calls that wait to be let in.", ["transport"])
ACCOUNTS = Gauge("tip_stream_accounts", "Accounts with at least one open stream.")
DELIVERED = Counter("tip_stream_events_delivered_total", "Events written to subscribers.", ["transport"])
ENDED = Counter("tip_stream_ended_total", "Streams that ended or did not begin, by reason.", ["transport", "reason"])
READ = Counter("tip_stream_events_read_total", "Events read from the log, by why.", ["why"])
READS = Counter("tip_stream_log_reads_total", "Reads of the log, by why.", ["why"])
HINTS = Counter("tip_stream_hints_total", "Hints received about accounts with open streams.")
AGE = Histogram(
    "tip_stream_event_age_seconds",
    "From an event's happening to its reaching the gateway.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
BUFFERED = Gauge("tip_stream_buffered_events", "Events kept in memory for all accounts.")
LAG = Gauge("tip_stream_lag_events", "How far the slowest stream is behind its log.")
VERIFIED_AGE = Gauge("tip_stream_verified_age_seconds", "Since the stream verified longest ago was verified.")
UNREACHABLE = Counter("tip_stream_database_unreachable_total", "Times the database could not be queried.", ["task"])
