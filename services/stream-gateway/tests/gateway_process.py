"""A gateway as its own process, also behind a proxy that fails on command."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import requests

from tip_testing.platform_plugin import Platform
from tip_testing.ports import reserved_port
from tip_testing.processes import Running, start

from .proxy import Proxy


@dataclass
class Gateway:
    """A running gateway process."""

    environment: dict[str, str]
    log_path: Path
    open_files: tuple[int, int] | None = None
    """Soft and hard limit it is started with, if not ours."""
    process: Running = field(init=False)

    def start(self) -> "Gateway":
        limits = [str(limit) for limit in self.open_files or ()]
        limited = ("sh", "-c", 'ulimit -Sn "$1"; ulimit -Hn "$2"; shift 2; exec "$@"', "sh", *limits)
        before = limited if self.open_files else ()
        command, environment = ("-m", "stream_gateway"), self.environment
        self.process = start(*command, environment=environment, log=self.log_path, ready=self._is_ready, before=before)
        return self

    def _is_ready(self, _: Running) -> bool:
        try:
            return requests.get(f"{self.events_url}/health/ready", timeout=1).status_code == 200
        except requests.RequestException:
            return False

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.environment['PORT']}"

    @property
    def events_url(self) -> str:
        return f"http://127.0.0.1:{self.environment['EVENTS_PORT']}"

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def metric(self, name: str) -> float:
        """The sum over all labels that contain the text given after the name."""
        exposed = requests.get(f"http://127.0.0.1:{self.environment['HEALTH_PORT']}/metrics", timeout=60).text
        return sum(float(line.rpartition(" ")[2]) for line in exposed.splitlines() if line.startswith(name))

    def send(self, number: int) -> None:
        self.process.send(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        return self.process.end(number, 20)


StartGateway = Callable[..., Gateway]


@contextmanager
def gateways(platform: Platform, folder: Path) -> Iterator[StartGateway]:
    started: list[Gateway] = []

    def started_gateway(open_files: tuple[int, int] | None = None, **settings: str) -> Gateway:
        ports = {name: str(reserved_port()) for name in ("PORT", "EVENTS_PORT", "HEALTH_PORT")}
        environment = {**platform.environment("stream_gateway"), **ports, **settings}
        started.append(Gateway(environment, folder / f"gateway-{len(started)}.log", open_files))
        return started[-1].start()

    try:
        yield started_gateway
    finally:
        for gateway in started:
            gateway.stop(signal.SIGKILL)
    for gateway in started:
        assert '"level": "error"' not in gateway.log, gateway.log


@asynccontextmanager
async def gateway_behind_proxy(
    platform: Platform, start: StartGateway, variable: str, **settings: str
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    """A gateway that reaches the server the variable names only through a proxy."""
    url = platform.environment("stream_gateway")[variable]
    parts = urlsplit(url)
    assert parts.port
    async with Proxy(parts.port) as proxy:
        address = url.replace(f"{parts.hostname}:{parts.port}", proxy.target)
        yield await asyncio.to_thread(start, **{variable: address}, **settings), proxy
