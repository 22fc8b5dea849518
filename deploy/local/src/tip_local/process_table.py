"""Every process of the platform, as data. One whose modules are not installed is left out."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from chassis.services import WEB_SERVICES
from tip_local.demo_ids import demo_id
from tip_local.home import BROKER_OPERATOR, SIGNING_KEY, VAULT_KEY
from tip_local.probes import Probe, answers, listens
from tip_local.stack import Stack


@dataclass(frozen=True)
class ProcessSpec:
    name: str
    needs: tuple[str, ...]
    """Modules that must be importable."""
    command: Callable[[Stack], tuple[str, ...]]
    env: Callable[[Stack], dict[str, str]] = lambda _: {}
    ready: Callable[[Stack], Probe] | None = None
    after: tuple[str, ...] = ()
    port_variables: tuple[str, ...] = ()
    """The settings that hold the ports it listens on."""
    copied: bool = False
    """Whether it is a copy of the nursery, which has imported what it imports (`tip_local.nursery`)."""
    yields: bool = False
    """Whether it gives way to those that somebody waits for when all of them want the processors."""
    shares_front: bool = False
    """Whether it serves the API's port together with others, on the socket that the supervisor keeps open for them."""

    @property
    def installed(self) -> bool:
        return all(module_exists(name) for name in self.needs)


def module_exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False


def python(*arguments: str) -> Callable[[Stack], tuple[str, ...]]:
    return lambda _: (sys.executable, "-m", *arguments)


def web_command(stack: Stack) -> tuple[str, ...]:
    # The name is for us: it distinguishes this process from another platform's.
    address = f"127.0.0.1:{stack.settings.port}"
    bind = address if stack.front is None else f"fd://{stack.front}"
    options = ("-c", "python:chassis.gunicorn_conf", "--bind", bind, "--name", address)
    return (sys.executable, "-m", "gunicorn", *options, "tip_local.web:create_front()")


def service_env(service: str) -> Callable[[Stack], dict[str, str]]:
    return lambda stack: stack.service_env(service)


def web_env(stack: Stack) -> dict[str, str]:
    """Four services and the console in one process: each service finds its database URL under its own name."""
    urls = {f"{service.upper()}_DATABASE_URL": stack.web_database_url(service) for service in WEB_SERVICES}
    return {
        **stack.common_env(),
        **urls,
        **stack.sealing_keys(SIGNING_KEY),  # identity signs here
        **stack.sealing_keys(VAULT_KEY),  # and accounts seals
        "INTERNAL_ORGANIZATIONS": str(demo_id("acme")),
        "WEB_PORT": str(stack.settings.port),
        "WEB_WORKERS": web_workers(os.environ.get("WEB_WORKERS") or "2"),
        "EVENTS_URL": stack.events_url,
        "PUBLIC_URL": stack.public_url,
        "CONSOLE_API_URL": stack.base_url,
    }


def web_workers(wanted: str) -> str:
    """Each of the two gunicorns has half of them; what is no number is theirs to refuse."""
    return str((int(wanted) + 1) // 2) if wanted.isascii() and wanted.isdigit() else wanted


def web(name: str) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        needs=("tip_local.web", "chassis.gunicorn_conf"),
        command=web_command,
        env=lambda stack: {**web_env(stack), "WEB_NAME": name},
        ready=lambda stack: answers(stack.settings.port, "/health/ready"),
        port_variables=("TIP_PORT",),
        copied=True,
        shares_front=True,
    )


def worker(
    service: str, job: str, env: Callable[[Stack], dict[str, str]] = lambda _: {}, suffix: str = ""
) -> ProcessSpec:
    """A process of a service beside its web; `env` is what it needs more than the service itself."""
    return ProcessSpec(
        name=f"{service}-{job}{suffix}",
        needs=(f"{service}.worker",),
        command=python(f"{service}.worker", job),
        env=lambda stack: {**stack.service_env(service), **env(stack)},
        copied=True,
        yields=True,
    )


def workers(service: str, *jobs: str, yields: bool = True) -> ProcessSpec:
    """Jobs of a service that hold the same secrets, in one process: what it imports is in memory once."""
    return ProcessSpec(
        name=f"{service}-workers",
        needs=(f"{service}.worker",),
        command=python(f"{service}.worker", *jobs),
        env=service_env(service),
        copied=True,
        yields=yields,
    )


def vault_keys(stack: Stack) -> dict[str, str]:
    return stack.sealing_keys(VAULT_KEY)


def execution_env(stack: Stack) -> dict[str, str]:
    """Who talks to brokers opens their secrets."""
    return {"PAPER_BROKER_URL": stack.paper_broker_url, **vault_keys(stack)}


def signer_env(stack: Stack) -> dict[str, str]:
    """Its own key and its own way into the database, and nothing of what the others have."""
    secrets = {"LOG_SIGNING_KEY": stack.secrets["log_signing_key"]}
    return {**secrets, **stack.metrics_env(), "DATABASE_URL": stack.database_url("intents_signer")}


def gateway_env(stack: Stack) -> dict[str, str]:
    ports = {"PORT": str(stack.settings.stream_port), "EVENTS_PORT": str(stack.settings.events_port)}
    return {"REFLECTION": "true", **stack.service_env("stream_gateway"), **ports}


def broker_env(stack: Stack) -> dict[str, str]:
    return {
        "PAPER_BROKER_PORT": str(stack.settings.paper_broker_port),
        "PAPER_BROKER_DATA": str(stack.home.path / "paper-broker"),
        "PAPER_BROKER_OPERATOR_TOKEN": stack.secrets[BROKER_OPERATOR],
    }


# Two of what stands between a command and its order: when one is killed the other goes on, and no import is waited for.
PROCESSES: tuple[ProcessSpec, ...] = (
    ProcessSpec(
        name="paper-broker",
        needs=("paper_broker.__main__",),
        command=python("paper_broker"),
        env=broker_env,
        ready=lambda stack: answers(stack.settings.paper_broker_port, "/health/live"),
        port_variables=("TIP_PAPER_BROKER_PORT",),
        copied=True,
        yields=True,
    ),
    web("web"),
    web("web-2"),
    ProcessSpec(
        name="stream-gateway",
        needs=("stream_gateway.__main__",),
        command=python("stream_gateway"),
        env=gateway_env,
        ready=lambda stack: listens(stack.settings.stream_port),
        port_variables=("TIP_STREAM_PORT", "TIP_EVENTS_PORT"),
        copied=True,
    ),
    workers("identity", "relay", "scheduler"),
    worker("accounts", "relay", env=vault_keys),  # apart: the consumer opens no secret, so it never holds the key
    worker("accounts", "consumer"),
    workers("controls", "relay", "consumer"),
    workers("intents", "relay", "consumer", "scheduler", yields=False),  # it locks the logs that submits write to
    ProcessSpec(
        name="intents-signer",
        needs=("intents.worker",),
        command=python("intents.worker", "signer"),
        env=signer_env,
        copied=True,
        yields=True,
    ),
    worker("intents", "executor", env=execution_env),
    worker("intents", "executor", env=execution_env, suffix="-2"),
    worker("intents", "reconciler", env=execution_env),
)
