import json
import os
import signal
import socket
import time
from contextlib import ExitStack, closing, suppress

import psycopg2
import pytest

from tip_local import control, processes
from tip_local.errors import Fault
from tip_local.home import BROKER_OPERATOR, KEYS, PASSWORDS, Home
from tip_local.logbook import LogBook
from tip_local.process_table import PROCESSES
from tip_local.processes import command_line
from tip_local.settings import Settings
from tip_local.stack import inherited_environment, running_stack
from tip_local.supervisor import StopRequested, Supervisor
from tip_local.up import NICENESS, Step, check_ports, run_step
from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually


def settings_of(platform):
    return Settings.from_env(platform.environment())


def query(platform, statement):
    with closing(psycopg2.connect(running_stack(settings_of(platform)).admin_url, connect_timeout=5)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else None


def gone(pids):
    return all(command_line(pid) == "" for pid in pids)


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def default_ports_taken():
    """As if a platform ran here with its usual settings."""
    with ExitStack() as held:
        for port in Settings.from_env({}).ports().values():
            with suppress(OSError):  # one does
                held.enter_context(socket.create_server(("127.0.0.1", port)))
        yield


def test_ctrl_c_stops_everything_and_the_data_is_there_next_time(platform):
    platform.start()
    query(platform, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 7 AS number")
    pids = platform.pids().values()
    assert control.status(settings_of(platform)).local["base_url"]

    code, out, err = platform.interrupt()

    assert (code, err) == (0, "")
    assert "is ready in" in out
    assert gone(pids)
    assert control.status(settings_of(platform)) is None
    platform.start()
    assert query(platform, "SELECT number FROM kept") == [(7,)]


def test_ctrl_c_while_starting_stops_everything(platform):
    platform.begin()
    eventually(lambda: bool(platform.home.state().get("processes")))

    code, _, err = platform.interrupt()

    assert (code, err) == (0, "")
    assert platform.home.state() == {}


def test_a_stop_in_the_middle_of_a_step_is_a_stop_whatever_the_step_made_of_it(folder, monkeypatch):
    monkeypatch.setattr("tip_local.apart.CAN_COPY", False)
    supervisor = Supervisor(LogBook(folder / "logs", None))

    def seeding(_stack):
        try:
            supervisor._on_signal(signal.SIGINT, None)
        except StopRequested as interruption:
            raise ValueError("as libraries do") from interruption

    with pytest.raises(StopRequested):
        run_step(Step("seeding", "json", seeding), None, supervisor)


@pytest.fixture
def own_signals():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_stop_does_not_wait_for_a_step_that_takes_long(folder, own_signals):
    supervisor = Supervisor(LogBook(folder / "logs", None))
    supervisor.handle_signals()
    stopped = os.getpid()

    def seeding(_stack):
        os.kill(stopped, signal.SIGTERM)
        time.sleep(60)

    began = time.monotonic()
    with pytest.raises(StopRequested):
        run_step(Step("seeding", "json", seeding), None, supervisor)
    assert time.monotonic() - began < 30


def test_a_killed_postgres_is_restarted_with_its_data_and_it_says_so(platform):
    platform.start()
    query(platform, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 7 AS number")
    first = platform.pids()["postgres"]

    os.kill(first, signal.SIGKILL)

    eventually(lambda: platform.pids()["postgres"] not in (first, None))
    eventually(lambda: {process.state for process in control.status(settings_of(platform)).processes} == {"ready"})
    assert query(platform, "SELECT number FROM kept") == [(7,)]
    _, out, _ = platform.interrupt()
    assert "postgres died (killed by SIGKILL), restarting at once" in out


def test_nothing_is_left_running_when_the_supervisor_is_killed(platform):
    platform.start()
    pids = list(platform.pids().values())
    assert set(platform.pids()) == {"postgres", "valkey", "web", "worker"}
    assert not any(gone([pid]) for pid in pids)

    platform.process.kill()
    platform.outcome()

    eventually(lambda: gone(pids))


def test_a_start_right_after_a_kill_recovers(platform):
    platform.start()
    query(platform, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 7 AS number")
    platform.process.kill()
    platform.outcome()

    platform.start()

    assert query(platform, "SELECT number FROM kept") == [(7,)]


def test_a_taken_port_is_named_in_one_line(platform, taken_port):
    platform.ports["TIP_PORT"] = taken_port
    platform.begin()

    code, out, err = platform.outcome()

    assert (code, out) == (1, "")
    assert err == f"tip: port {taken_port} is taken: end what listens there, or choose another with TIP_PORT\n"


def test_a_second_one_in_the_same_home_is_refused(platform):
    platform.start()
    second = type(platform)(platform.home)
    second.begin()

    code, out, err = second.outcome()

    assert (code, out) == (1, "")
    assert err.strip() == (
        f"tip: already running in {platform.home.path} (pid {platform.process.pid}); `make stop` ends it"
    )


@pytest.mark.parametrize(
    ("variable", "url", "message"),
    [
        ("DATABASE_URL", "postgresql://me:secret-word@127.0.0.1:{port}/x", "DATABASE_URL: no Postgres there: "),
        ("DATABASE_URL", "mysql://me:secret-word@127.0.0.1/x", "DATABASE_URL must look like postgresql://"),
        ("DATABASE_URL", "postgresql://me:secret-word@127.0.0.1:x/x", "DATABASE_URL: no Postgres there: "),
        ("REDIS_URL", "redis://:secret-word@127.0.0.1:{port}/0", "REDIS_URL: no Redis there: "),
        ("REDIS_URL", "nonsense secret-word", "REDIS_URL must look like redis://"),
    ],
)
def test_a_datastore_that_cannot_be_used_is_one_line(platform, variable, url, message):
    platform.begin(**{variable: url.format(port=reserved_port())})

    code, _, err = platform.outcome()

    assert code == 1
    assert err.startswith(f"tip: {message}")
    assert err.count("\n") == 1
    assert "secret-word" not in err


def test_given_datastores_are_used_and_none_is_started(platform, postgres_server, valkey_server):
    platform.begin(DATABASE_URL=postgres_server.url, REDIS_URL=valkey_server.url)

    eventually(platform.is_ready)
    assert set(platform.pids()) == {"web", "worker"}


def test_secrets_are_made_once_and_are_the_owners_alone(platform):
    platform.start()
    kept = platform.home.secrets()
    platform.interrupt()
    platform.start()

    assert platform.home.secrets() == kept
    assert set(kept) == {*PASSWORDS, *KEYS}
    modes = {name: (platform.home.path / name).stat().st_mode & 0o777 for name in ("secrets.json", "local.json", "")}
    assert modes == {"secrets.json": 0o600, "local.json": 0o600, "": 0o700}


@pytest.mark.parametrize(
    "name",
    [
        *("DATABASE_URL", "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS", "VAULT_KEY_ENCRYPTION_KEY_FILE"),
        *(secret.upper() for secret in (*KEYS, BROKER_OPERATOR)),
    ],
)
def test_a_key_in_the_operators_shell_is_handed_on_to_nobody(name, monkeypatch):
    monkeypatch.setenv(name, "from the shell")

    assert name not in inherited_environment()


def test_local_json_says_where_everything_is(platform):
    platform.start()

    local = json.loads(platform.home.local_file.read_text())

    assert local["base_url"] == f"http://127.0.0.1:{platform.ports['TIP_PORT']}"
    assert set(local) == {
        *("base_url", "stream_target", "events_url", "paper_broker_url"),
        "paper_broker_operator_token",
    }


def test_stop_returns_when_everything_has_ended(platform):
    platform.start()
    pids = platform.pids().values()

    assert control.stop(settings_of(platform)) is True
    assert gone(pids)
    assert control.stop(settings_of(platform)) is False


def test_start_that_cannot_start_gives_the_reason(platform, taken_port, default_ports_taken, monkeypatch):
    for name, value in platform.environment(TIP_POSTGRES_PORT=str(taken_port)).items():
        monkeypatch.setenv(name, value)

    with pytest.raises(Fault, match=f"^port {taken_port} is taken: .* TIP_POSTGRES_PORT$"):
        control.start(Settings.from_env())


def test_a_port_that_only_root_may_use_is_not_called_taken(monkeypatch):
    class Forbidding(socket.socket):
        def bind(self, _address):
            raise PermissionError

    monkeypatch.setattr(processes.socket, "socket", Forbidding)

    with pytest.raises(Fault, match=r"^this user may not listen on port 80; choose another with TIP_PORT$"):
        check_ports(Settings.from_env({"TIP_PORT": "80"}), PROCESSES, leftovers=False)


def test_a_remembered_port_that_is_taken_now_is_replaced(folder, taken_port):
    home = Home(folder / "home")
    home.create()
    home.port("postgres", taken_port)

    assert home.port("postgres", None) != taken_port


@pytest.mark.parametrize(("setting", "given_way"), [("yes", NICENESS), ("no", 0)])
def test_work_in_the_background_gives_way_unless_that_is_turned_off(platform, setting, given_way):
    platform.start(TIP_YIELD=setting)

    niceness = {name: os.getpriority(os.PRIO_PROCESS, pid) - os.nice(0) for name, pid in platform.pids().items()}
    assert (niceness["worker"], niceness["web"]) == (given_way, 0)
