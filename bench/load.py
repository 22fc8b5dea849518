"""Load from a second process: wrk, and what it found."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.harness import tool

_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True)
class Load:
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    refused: int
    """Answers that were not 2xx or 3xx."""


def wrk(url: str, *, connections: int, seconds: int, script: str = "") -> Load:
    """Drive the address; `script` is Lua, for a method, headers and a body."""
    program = tool("wrk", "it is a Debian package")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = [program, "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--latency", "-s", file.name, url]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Load(
        float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1]),  # type: ignore[index]
        _milliseconds(output, "50%"),
        _milliseconds(output, "99%"),
        int(found[1]) if (found := re.search(r"Non-2xx or 3xx responses: (\d+)", output)) else 0,
    )


def _milliseconds(output: str, percentile: str) -> float:
    found = re.search(rf"{re.escape(percentile)}\s+([\d.]+)(us|ms|s)", output)
    if found is None:
        raise RuntimeError(f"wrk printed no {percentile} latency")
    return float(found[1]) * _UNITS_MS[found[2]]


def post(path: Path | str, body: str, **headers: str) -> str:
    """The Lua script for a POST of one body."""
    lines = ['wrk.method = "POST"', f"wrk.body = [[{body}]]", 'wrk.headers["Content-Type"] = "application/json"']
    lines += [f'wrk.headers["{name.replace("_", "-")}"] = "{value}"' for name, value in headers.items()]
    return "\n".join([f"-- {path}", *lines])
