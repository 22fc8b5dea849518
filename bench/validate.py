"""Key validation against the least a web process here can do: `make bench NAME=validate`.

The reference is the same gunicorn, threads and Flask answering /health/live, which neither parses a body nor asks the
database. What the ratio shows is the price of strict JSON, marshmallow, two rate limits and one indexed read.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import pairs, report
from bench.load import post, wrk
from tip_local.processes import free_port

SECONDS = 5
CONNECTIONS = 16


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tip-bench-") as home:
        ports = {name: str(free_port()) for name in ("TIP_PORT", "TIP_STREAM_PORT", "TIP_PAPER_BROKER_PORT")}
        unlimited = {"VALIDATE_RATE_LIMIT_PER_MINUTE": "100000000", "RATE_LIMIT_PER_MINUTE": "100000000"}
        environment = {**os.environ, **ports, **unlimited, "TIP_HOME": home, "LOG_LEVEL": "warning"}
        tip = str(Path(sys.executable).with_name("tip"))
        subprocess.run([tip, "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            measure(json.loads((Path(home) / "local.json").read_text()))
        finally:
            subprocess.run([tip, "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)


def measure(local: dict[str, dict[str, dict[str, dict[str, str]]]]) -> None:
    base = str(local["base_url"])
    path = "/api/v1/auth/api-key/validate"
    script = post(path, json.dumps({"api_key": local["organizations"]["acme"]["api_keys"]["paper"]}))

    def bare() -> float:
        return wrk(f"{base}/health/live", connections=CONNECTIONS, seconds=SECONDS).requests_per_second

    def validation() -> float:
        load = wrk(f"{base}{path}", connections=CONNECTIONS, seconds=SECONDS, script=script)
        if load.refused:
            sys.exit(f"bench: {load.refused} requests were refused")
        return load.requests_per_second

    found = pairs("key validation / bare answer", bare, validation, unit="req/s")
    report(
        "Key validation",
        [found],
        versions=("python", "flask", "gunicorn", "sqlalchemy"),
        command="make bench NAME=validate",
        notes=f"{CONNECTIONS} connections, {SECONDS} s each, two gunicorn workers of eight threads.",
    )


if __name__ == "__main__":
    main()
