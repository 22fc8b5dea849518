"""A pytest plugin that runs the journeys against containers; `make e2e-containers` brings it in.

The platform of docker-compose.yml is started once, with testcontainers, on free ports of this machine, and taken away
with its volumes afterwards. Works with Compose v2 and with Compose 1.29. TIP_IMAGE names an image that is built
already; TIP_REUSE_CONTAINERS=1 leaves the platform running and finds it again, for whoever works on these tests.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from glewlwyd_admin import Glewlwyd, with_their_users
from testcontainers.compose import ComposeContainer, DockerCompose

from tip_testing.ports import reserved_port

REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 480
COMPOSE_V2 = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
SCALE = {"identity": 2, "accounts": 2, "controls": 2, "intents": 2, "intents-executor": 3, "stream-gateway": 2}


class Platform(DockerCompose):
    """testcontainers' DockerCompose, able to use the older docker-compose, too."""

    local: Path
    images: tuple[str, ...] = ()
    took: Mapping[str, float] = MappingProxyType({})
    """Seconds of every stage of the start."""

    @cached_property
    def compose_command_property(self) -> list[str]:
        files = [part for file in self.compose_file_name or [] for part in ("-f", str(file))]
        return [*(["docker", "compose"] if COMPOSE_V2 else ["docker-compose"]), *files]

    def start(self) -> None:
        if not os.environ.get("TIP_IMAGE"):
            self._timed("build", "build")
        scale = [part for name, n in SCALE.items() if name in self.names for part in ("--scale", f"{name}={n}")]
        self._timed("start", "up", "--detach", *scale)
        began = time.monotonic()
        self.wait_until_healthy()
        self.took = {**self.took, "healthy": time.monotonic() - began}

    def stop(self, down: bool = True) -> None:
        """Taken away with its volumes. An engine under stress may keep a network's name, and that is nobody's fault."""
        if down:
            command = [*self.compose_command_property, "down", "--volumes", "--remove-orphans", "--timeout", "10"]
            subprocess.run(command, cwd=self.context, capture_output=True, check=False)
            assert self.docker() == [], "containers are left"

    def _timed(self, stage: str, *arguments: str) -> None:
        began = time.monotonic()
        self.compose(*arguments)
        self.took = {**self.took, stage: time.monotonic() - began}

    @cached_property
    def names(self) -> list[str]:
        """The services of the compose file."""
        return self.compose("config", "--services").split()

    def compose(self, *arguments: str) -> str:
        result = subprocess.run(
            [*self.compose_command_property, *arguments], cwd=self.context, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, f"compose {' '.join(arguments)}: {result.stdout[-2000:]}{result.stderr[-4000:]}"
        return result.stdout

    def docker(self, service: str | None = None) -> list[Any]:
        """The engine's own view of the containers, by the labels that every Compose sets."""
        project = os.environ["COMPOSE_PROJECT_NAME"]
        labels = [f"com.docker.compose.project={project}", "com.docker.compose.oneoff=False"]
        if service:
            labels.append(f"com.docker.compose.service={service}")
        found = self._get_docker_client().client.containers.list(all=True, filters={"label": labels})
        return sorted(found, key=lambda container: str(container.name))

    def get_containers(self, include_all: bool = False) -> list[ComposeContainer]:
        return [
            ComposeContainer(ID=found.id, Name=found.name, Service=service_of(found), State=found.status)
            for found in self.docker()
            if include_all or found.status == "running"
        ]

    def states(self) -> dict[str, str]:
        return {container.name: state_of(container) for container in self.docker()}

    def wait_until_healthy(self, seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while bad := {name: state for name, state in self.states().items() if state not in ("healthy", "done")}:
            assert time.monotonic() < deadline, f"not healthy: {bad}\n{self.compose('logs', '--tail', '20')[-6000:]}"
            time.sleep(0.5)

    def copy_out(self, folder: Path) -> Path:
        """local.json and the certificate authority, out of the volume."""
        for name in ("local.json", "ca.crt"):
            command = ["docker", "cp", f"{self.docker('seed')[0].id}:/var/lib/tip/{name}", str(folder / name)]
            subprocess.run(command, check=True, capture_output=True)
        return folder / "local.json"

    @cached_property
    def provider(self) -> Glewlwyd | None:
        """The OpenID Connect provider, in a run whose users come from one (deploy/containers/glewlwyd.yml)."""
        for container in self.docker("glewlwyd"):
            container.reload()
            port = container.ports["4593/tcp"][0]["HostPort"]
            settings = dict(line.split("=", 1) for line in container.attrs["Config"]["Env"])
            return Glewlwyd(f"http://127.0.0.1:{port}", settings["GLEWLWYD_API_KEY"])
        return None

    def warnings(self, service: str) -> list[str]:
        """What the service's containers have logged as a warning or worse."""
        lines = chain.from_iterable(container.logs().decode().splitlines() for container in self.docker(service))
        return [line for line in lines if re.search('"level": ?"(warning|error|critical)"', line)]

    def run_in(self, service: str, *command: str) -> tuple[int, str]:
        """Run a command in the service's first container, in the environment of its own process."""
        entry = "/opt/tip/containers/with_environment.sh"
        code, output = self.docker(service)[0].exec_run([entry, *command])
        return int(code), output.decode()


def service_of(container: Any) -> str:
    return str(container.labels["com.docker.compose.service"])


def state_of(container: Any) -> str:
    state = container.attrs["State"]
    if state["Status"] == "exited":
        return "done" if state["ExitCode"] == 0 else f"ended with {state['ExitCode']}"
    return str(state.get("Health", {}).get("Status", state["Status"]))


_PLATFORM = pytest.StashKey[Platform]()


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    os.environ.setdefault("COMPOSE_PROJECT_NAME", "tip-e2e")
    os.environ.setdefault("WEB_WORKERS", "1")  # there are two replicas of everything already
    os.environ.setdefault("OUTBOX_ATTEMPT_LIMIT", "2")  # what cannot succeed is given up within seconds
    os.environ.setdefault("RATE_LIMIT_PER_MINUTE", "600000")  # some tests send as fast as they can
    for variable in ("INGRESS_PORT", "PAPER_BROKER_PORT", "GLEWLWYD_PORT"):
        os.environ.setdefault(variable, str(reserved_port()))
    files = ["docker-compose.yml", *os.environ.get("TIP_COMPOSE_FILES", "").split()]
    platform = Platform(REPOSITORY, compose_file_name=files)
    session.config.stash[_PLATFORM] = platform
    if not (os.environ.get("TIP_REUSE_CONTAINERS") and platform.docker("seed")):
        platform.stop()  # what an interrupted run has left
        platform.start()
    folder = Path(tempfile.mkdtemp(prefix="tip-containers-"))
    platform.local = platform.copy_out(folder)
    if platform.provider is not None:  # then everyone's tokens are the provider's, and the journeys are the same
        platform.provider.configure()
        described = json.loads(platform.local.read_text())
        platform.local.write_text(json.dumps(with_their_users(platform.provider, described)))
    os.environ["TIP_LOCAL_JSON"] = str(platform.local)
    os.environ["TIP_OPERATOR"] = shlex.join(
        [*platform.compose_command_property, "run", "--rm", "--no-deps", "-T", "migrate"]
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    platform = session.config.stash.get(_PLATFORM, None)
    if platform is None:
        return
    if session.exitstatus not in (0, pytest.ExitCode.NO_TESTS_COLLECTED) and (kept := os.environ.get("TIP_LOGS")):
        Path(kept).write_text(platform.compose("logs", "--no-color"))
    if not os.environ.get("TIP_REUSE_CONTAINERS"):
        platform.stop()
    if hasattr(platform, "local"):
        shutil.rmtree(platform.local.parent)  # it holds the demo's credentials


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what ran: what passes on a stand-in image proves the wiring, not the public image's version."""
    platform = config.stash.get(_PLATFORM, None)
    if platform is None:
        return
    terminalreporter.section("containers")
    for line in platform.images:
        terminalreporter.write_line(line)
    stages = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in platform.took.items())
    terminalreporter.write_line(f"stages: {stages}")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    platform = session.config.stash.get(_PLATFORM, None)
    if platform is not None:
        platform.images = images_of(platform)


def images_of(platform: Platform) -> tuple[str, ...]:
    found: dict[tuple[str, str], list[str]] = {}
    for container in platform.docker():
        name = container.attrs["Config"]["Image"]
        found.setdefault((name, container.image.short_id), []).append(service_of(container))
    return tuple(f"{name} ({image}): {', '.join(sorted(users))}" for (name, image), users in sorted(found.items()))


@pytest.fixture(scope="session")
def containers(request: pytest.FixtureRequest) -> Platform:
    """The running platform, for tests about its containers."""
    return request.config.stash[_PLATFORM]
