"""What can be set from outside; every variable has a default, so none has to be."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tip_local.errors import Fault

REPOSITORY = Path(__file__).resolve().parents[4]


@dataclass(frozen=True)
class Settings:
    home: Path
    """TIP_HOME, default .tip in the repository: data, secrets, logs."""
    port: int
    """TIP_PORT, default 8080: the API."""
    stream_port: int
    """TIP_STREAM_PORT, default 9090: the gRPC stream."""
    events_port: int
    """TIP_EVENTS_PORT, default 9091: the same events over HTTP."""
    paper_broker_port: int
    """TIP_PAPER_BROKER_PORT, default 8081."""
    postgres_port: int | None
    """TIP_POSTGRES_PORT, default a free one that is kept."""
    valkey_port: int | None
    """TIP_VALKEY_PORT, default a free one that is kept."""
    database_url: str | None
    """DATABASE_URL: a Postgres (15 or newer), as superuser, instead of the embedded one."""
    redis_url: str | None
    """REDIS_URL: a Redis or Valkey instead of the embedded one."""
    demo: bool = True
    """TIP_DEMO=no leaves the demo data out: an installation as empty as a real one, for `tip init`."""
    yields: bool = True
    """TIP_YIELD=no where other programs fill the machine: work in the background gives way to them, too."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "Settings":
        settings = cls(
            home=Path(env.get("TIP_HOME") or default_home()).expanduser().absolute(),
            port=port(env, "TIP_PORT") or 8080,
            stream_port=port(env, "TIP_STREAM_PORT") or 9090,
            events_port=port(env, "TIP_EVENTS_PORT") or 9091,
            paper_broker_port=port(env, "TIP_PAPER_BROKER_PORT") or 8081,
            postgres_port=port(env, "TIP_POSTGRES_PORT"),
            valkey_port=port(env, "TIP_VALKEY_PORT"),
            database_url=standard_scheme(env.get("DATABASE_URL", "")) or None,
            redis_url=env.get("REDIS_URL") or None,
            demo=yes_or_no(env, "TIP_DEMO"),
            yields=yes_or_no(env, "TIP_YIELD"),
        )
        settings.refuse_shared_ports()
        return settings

    def ports(self) -> dict[str, int]:
        """The variable and its port, for those that are fixed."""
        chosen = {
            "TIP_PORT": self.port,
            "TIP_STREAM_PORT": self.stream_port,
            "TIP_EVENTS_PORT": self.events_port,
            "TIP_PAPER_BROKER_PORT": self.paper_broker_port,
            "TIP_POSTGRES_PORT": self.postgres_port,
            "TIP_VALKEY_PORT": self.valkey_port,
        }
        return {variable: number for variable, number in chosen.items() if number}

    def refuse_shared_ports(self) -> None:
        seen: dict[int, str] = {}
        for variable, number in self.ports().items():
            if number in seen:
                raise Fault(f"{seen[number]} and {variable} are both {number}: each needs a port of its own")
            seen[number] = variable


def yes_or_no(env: Mapping[str, str], variable: str) -> bool:
    text = env.get(variable, "").strip().lower() or "yes"
    if text not in ("yes", "no"):
        raise Fault(f"{variable} must be yes or no, not {text!r}")
    return text == "yes"


def port(env: Mapping[str, str], variable: str) -> int | None:
    text = env.get(variable, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535):
        raise Fault(f"{variable} must be a port number from 1 to 65535, not {text!r}")
    return int(text)


def standard_scheme(url: str) -> str:
    """libpq takes both spellings, SQLAlchemy only the longer one."""
    return url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres://") else url


def default_home() -> Path:
    """Beside the sources when run from them, else under the working directory."""
    return (REPOSITORY if (REPOSITORY / "Makefile").exists() else Path.cwd()) / ".tip"
