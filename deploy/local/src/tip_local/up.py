"""`tip up`: the datastores, the schema, the demo data, then every process; until it is stopped."""

import fcntl
import json
import os
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from signal import Signals
from typing import Any, TextIO

from tip_local import probes
from tip_local.apart import apart
from tip_local.banner import banner
from tip_local.copies import CAN_COPY, Nursery
from tip_local.datastore import SYSTEM_ENVIRONMENT, Datastore, write_private
from tip_local.errors import Fault
from tip_local.home import Home
from tip_local.logbook import LogBook
from tip_local.postgres import create_database
from tip_local.process_table import PROCESSES, ProcessSpec, module_exists
from tip_local.processes import end_leftover, port_is_free, wait_until
from tip_local.settings import Settings
from tip_local.stack import DATABASE, Stack, embedded_postgres, embedded_valkey, inherited_environment
from tip_local.supervisor import Child, Process, StopRequested, Supervisor

LEFTOVER_PORT_SECONDS = 5.0
FRONT_BACKLOG = 2048
FRONT_DESCRIPTOR = 200
"""Or higher: a number that those who share it have not given to anything else."""
NICENESS = 6
"""Of what works in the background: a quarter of the share of what answers callers, when there is not enough for all."""


@dataclass
class Record:
    """Keeps the state file true while processes come and go: `tip status` reads it, and a start after a kill does."""

    home: Home
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ready: bool = False
    children: list[Child] = field(default_factory=list)

    def update(self, children: list[Child]) -> None:
        self.children = children
        self.write()

    def finish(self) -> None:
        self.ready = True
        self.write()

    def write(self) -> None:
        processes = [described(child) for child in self.children]
        state = {"pid": os.getpid(), "started_at": self.started_at.isoformat(), "ready": self.ready}
        self.home.write_state({**state, "processes": processes})


def described(child: Child) -> dict[str, Any]:
    return {
        "name": child.process.name,
        "state": child.state,
        "pid": child.pid,
        "since": child.since.isoformat() if child.since else None,
        "restarts": child.restarts,
        "arguments": " ".join(child.process.argv[1:]),
        "stop_signal": int(child.process.stop_signal),
    }


def migrate(stack: Stack) -> dict[str, Any]:
    import_module("chassis.migrations").migrate(stack.admin_url, stack.role_passwords)
    return {}


def seed(stack: Stack) -> dict[str, Any]:
    demo = import_module("tip_local.demo")
    if not stack.settings.demo:
        demo.register_console(stack)
        return {}
    return dict(demo.seed(stack))


@dataclass(frozen=True)
class Step:
    """Done once per start, between the datastores and the processes; what it returns goes into local.json."""

    name: str
    needs: str
    run: Callable[[Stack], dict[str, Any]]


STEPS = (
    Step("migration", "chassis.migrations", migrate),
    Step("seeding demo data", "tip_local.demo", seed),
)


def up(
    settings: Settings,
    console: TextIO | None,
    table: tuple[ProcessSpec, ...] = PROCESSES,
    steps: tuple[Step, ...] = STEPS,
) -> None:
    """Returns after a requested stop; raises Fault, with everything stopped, when it cannot start."""
    began = time.monotonic()
    home = Home(settings.home)
    home.create()
    installed = tuple(spec for spec in table if spec.installed)
    with home.locked():
        check_ports(settings, installed, leftovers=end_leftovers(home))
        home.forget_metrics()
        record = Record(home)
        record.write()
        supervisor = Supervisor(LogBook(home.logs, console), record.update)
        supervisor.handle_signals()
        if CAN_COPY and any(spec.copied for spec in installed):
            # The directory counts when the library is imported, which is in the nursery.
            metrics = {"PROMETHEUS_MULTIPROC_DIR": str(home.metrics)}
            supervisor.nursery = Nursery({**inherited_environment(), **metrics})
            supervisor.nursery.open()  # it imports while the datastores start
        front: socket.socket | None = None
        try:
            stack = start_datastores(settings, home, supervisor)
            local = stack.addresses()
            for step in steps:
                local |= run_step(step, stack, supervisor)
            if any(spec.shares_front for spec in installed):
                front = open_front(settings.port)
                stack = replace(stack, front=front.fileno())
            supervisor.start([supervised(stack, spec) for spec in installed])
            write_private(home.local_file, json.dumps(local, indent=2))
            record.finish()
            supervisor.log.show(banner(local, time.monotonic() - began))
            supervisor.run()
        except StopRequested:
            pass
        finally:
            supervisor.log.say("stopping")
            if front:
                front.close()
            supervisor.stop()
            if supervisor.nursery:
                supervisor.nursery.close()
            supervisor.log.close()
            home.forget_state()


def supervised(stack: Stack, spec: ProcessSpec) -> Process:
    """A process of the table as the supervisor starts it in this platform."""
    return Process(
        name=spec.name,
        argv=spec.command(stack),
        env={**inherited_environment(), **spec.env(stack)},
        ready=spec.ready(stack) if spec.ready else None,
        after=("postgres", "valkey", *spec.after),
        descriptors=(stack.front,) if spec.shares_front and stack.front is not None else (),
        niceness=NICENESS if spec.yields and stack.settings.yields else 0,
        copied=spec.command(stack)[2:] if spec.copied else (),
    )


def open_front(port: int) -> socket.socket:
    """Kept open here, so that whoever calls while one of those that serve it is restarted is not turned away."""
    try:
        with socket.create_server(("127.0.0.1", port), backlog=FRONT_BACKLOG) as front:
            return socket.socket(fileno=fcntl.fcntl(front, fcntl.F_DUPFD_CLOEXEC, FRONT_DESCRIPTOR))
    except OSError as error:
        raise Fault(f"port {port} cannot be listened on: {error.strerror}; choose another with TIP_PORT") from error


def run_step(step: Step, stack: Stack, supervisor: Supervisor) -> dict[str, Any]:
    """Any failure of a step is one line to the person; the stack trace is in the log file."""
    if not module_exists(step.needs):
        return {}
    try:
        with supervisor.interruptible():
            return apart(step.run, stack)
    except (Fault, StopRequested):
        raise
    except Exception as error:
        if supervisor.stop_requested:  # what was interrupted may have turned the interruption into an error of its own
            raise StopRequested from None
        supervisor.log.note(traceback.format_exc())
        raise Fault(f"{step.name} failed: {probes.one_line(error)} (more in {supervisor.log.own_file})") from error


def start_datastores(settings: Settings, home: Home, supervisor: Supervisor) -> Stack:
    """Start the embedded ones; the others are somebody else's to run, and must be there already."""
    postgres = None if settings.database_url else embedded_postgres(settings, home, home.port)
    valkey = None if settings.redis_url else embedded_valkey(settings, home, home.port)
    if settings.database_url:
        probes.require_postgres(settings.database_url)
    if settings.redis_url:
        probes.require_redis(settings.redis_url)
    if postgres and postgres.notice:
        supervisor.log.say(postgres.notice)
    supervisor.start([supervised_store(store) for store in (postgres, valkey) if store])
    if postgres:
        create_database(postgres.url, DATABASE)
    admin_url = postgres.url_of(DATABASE) if postgres else settings.database_url or ""
    redis_url = valkey.url if valkey else settings.redis_url or ""
    return Stack(settings, home, home.secrets(), admin_url, redis_url)


def supervised_store(store: Datastore) -> Process:
    def before() -> Mapping[str, str]:
        store.prepare()
        return store.environment()

    return Process(
        name=store.name,
        argv=tuple(store.command()),
        env=SYSTEM_ENVIRONMENT,
        ready=store.is_ready,
        before=before,
        stop_signal=store.stop_signal,
        death_signal=store.stop_signal,
        identity=store.identity,
    )


def end_leftovers(home: Home) -> bool:
    """End what a killed run left behind. Rarely anything: on Linux they end with it, on macOS they do not."""
    state = home.state()
    for process in state.get("processes", []):
        belongs = partial(started_with, process["arguments"])
        end_leftover(process["pid"] or 0, belongs, Signals(process["stop_signal"]))
    return bool(state)


def started_with(arguments: str, command: str) -> bool:
    return bool(arguments) and arguments in command


def check_ports(settings: Settings, table: tuple[ProcessSpec, ...], *, leftovers: bool) -> None:
    used = {variable for spec in table for variable in spec.port_variables}
    used |= set() if settings.database_url else {"TIP_POSTGRES_PORT"}
    used |= set() if settings.redis_url else {"TIP_VALKEY_PORT"}
    patience = LEFTOVER_PORT_SECONDS if leftovers else 0.0
    for variable, number in settings.ports().items():
        if variable in used:
            require_port(variable, number, patience)


def require_port(variable: str, number: int, patience: float) -> None:
    try:
        free = wait_until(partial(port_is_free, number), patience)
    except PermissionError:
        raise Fault(f"this user may not listen on port {number}; choose another with {variable}") from None
    if not free:
        raise Fault(f"port {number} is taken: end what listens there, or choose another with {variable}")
