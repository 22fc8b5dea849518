"""The gateway's configuration."""

from dataclasses import dataclass

from chassis.config import BadConfiguration, ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    host: str = setting("HOST", "address to listen on", default="127.0.0.1")
    port: int = setting("PORT", "port of the gRPC stream", default=9090)
    events_port: int = setting("EVENTS_PORT", "port of the same events over HTTP; 0: not served", default=9091)
    heartbeat_seconds: float = setting("HEARTBEAT_SECONDS", "between two heartbeats of a stream", default=15.0)
    poll_seconds: float = setting(
        "POLL_SECONDS", "how often logs are polled without a hint; the longest delay by a lost hint", default=0.8
    )
    recheck_seconds: float = setting(
        "RECHECK_SECONDS", "how often credentials and accounts of open streams are verified again", default=2.0
    )
    unverified_seconds: float = setting(
        "UNVERIFIED_SECONDS", "how long a stream goes on that cannot be verified again", default=30.0
    )
    stuck_seconds: float = setting("STUCK_SECONDS", "how long a subscriber may not read before it is cut", default=10.0)
    drain_seconds: float = setting(
        "DRAIN_SECONDS", "how long streams may finish what is buffered when the process stops", default=6.0
    )
    buffer_events: int = setting("BUFFER_EVENTS", "newest events kept in memory per subscribed account", default=512)
    streams_per_principal: int = setting(
        "STREAMS_PER_PRINCIPAL", "streams of one caller here, open or waiting to be let in", default=200
    )
    streams_per_organization: int = setting(
        "STREAMS_PER_ORGANIZATION", "streams of one organization here, open or waiting to be let in", default=6_000
    )
    streams_per_process: int = setting("STREAMS_PER_PROCESS", "open streams of all callers here", default=12_000)
    retention_days: int = setting(
        "RETENTION_DAYS", "events older than this cannot be resumed from; 0: all can", default=0
    )
    keepalive_seconds: float = setting("KEEPALIVE_SECONDS", "silence after which a connection is pinged", default=30.0)
    keepalive_timeout_seconds: float = setting(
        "KEEPALIVE_TIMEOUT_SECONDS", "how long it may take to answer the ping", default=10.0
    )
    reflection: bool = setting("REFLECTION", "let clients read the schema by gRPC reflection", default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("heartbeat", "poll", "recheck", "unverified", "stuck", "drain", "keepalive", "keepalive_timeout"):
            if getattr(self, f"{name}_seconds") <= 0:
                raise BadConfiguration(f"{name.upper()}_SECONDS: must be greater than 0")
        for name in ("buffer_events", "streams_per_principal", "streams_per_organization", "streams_per_process"):
            if getattr(self, name) < 1:
                raise BadConfiguration(f"{name.upper()}: must be at least 1")
        if self.retention_days < 0:
            raise BadConfiguration("RETENTION_DAYS: must not be negative")
