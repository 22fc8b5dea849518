import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg2
import psycopg2.extensions
import pytest

from tip_local import rootless
from tip_local.errors import Fault
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.processes import command_line
from tip_testing.waiting import eventually

START_POSTGRES = """
import sys, time
from pathlib import Path
from tip_local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def used_server():
    with tempfile.TemporaryDirectory(prefix="tip-") as made:
        yield EmbeddedPostgres(Path(made) / "postgres", fast=True)


@pytest.fixture
def server(used_server):
    with used_server as running:
        query(running, "DROP TABLE IF EXISTS kept")
        yield running


def query(server, statement):
    with closing(psycopg2.connect(server.url, connect_timeout=5)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else None


def gone(pid):
    return command_line(pid) == ""


def test_postgres_killed_hard_comes_back_with_its_data(server):
    query(server, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")

    server.kill()
    server.start()

    assert query(server, "SELECT count(*) FROM kept") == [(1000,)]


def test_postgres_killed_while_a_session_is_busy_comes_back(server):
    query(server, "CREATE TABLE kept (number int)")
    busy = psycopg2.connect(server.url, async_=True)
    eventually(lambda: busy.poll() == psycopg2.extensions.POLL_OK)
    busy.cursor().execute("SELECT sum(sqrt(number)) FROM generate_series(1, 1000000000) AS number")
    eventually(lambda: query(server, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%sqrt(%000)%'") != [])

    server.kill()
    server.start()

    assert query(server, "SELECT count(*) FROM kept") == [(0,)]
    busy.close()


def test_nobody_enters_without_the_password(server):
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(server.url.replace(server.password, "guess"))

    assert (server.directory / "password").stat().st_mode & 0o777 == 0o600
    assert server.password not in command_line(server.pid)


def test_it_listens_on_loopback_only_with_room_for_400_connections(server):
    assert query(server, "SHOW listen_addresses") == [("127.0.0.1",)]
    assert query(server, "SHOW max_connections") == [("400",)]
    assert query(server, "SHOW server_version_num")[0][0].startswith("18")


def test_a_lasting_cluster_writes_through_to_the_disk(folder):
    with EmbeddedPostgres(folder / "postgres") as server:
        assert query(server, "SHOW fsync") == [("on",)]
        assert query(server, "SHOW synchronous_commit") == [("on",)]
        assert query(server, "SHOW full_page_writes") == [("on",)]


def test_a_clean_stop_leaves_nothing_behind(server):
    pid = server.pid
    server.stop()

    assert gone(pid)
    assert not (server.data / "postmaster.pid").exists()


def test_a_database_is_created_once(server):
    create_database(server.url, "twice")
    create_database(server.url, "twice")

    assert query(server, "SELECT count(*) FROM pg_database WHERE datname = 'twice'") == [(1,)]


def test_a_stale_lock_file_naming_a_living_stranger_is_not_believed(server):
    stranger = subprocess.Popen(["sleep", "60"])
    server.kill()
    lock = server.data / "postmaster.pid"
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")

    server.start()

    assert query(server, "SELECT 1") == [(1,)]
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_server_left_running_is_taken_over_with_its_data(server):
    query(server, "CREATE TABLE kept AS SELECT 7 AS number")

    with EmbeddedPostgres(server.directory, fast=True) as successor:
        assert query(successor, "SELECT number FROM kept") == [(7,)]
        assert server.pid is None


def test_an_interrupted_initdb_is_started_over(folder):
    starter = subprocess.Popen([sys.executable, "-c", START_POSTGRES, str(folder / "postgres")])
    eventually(lambda: list(folder.glob("postgres/data.new-*/base/1")) != [])
    starter.kill()
    starter.wait()
    assert not (folder / "postgres" / "data").exists()

    with EmbeddedPostgres(folder / "postgres", fast=True) as server:
        assert query(server, "SELECT 1") == [(1,)]
        assert list(server.directory.glob("data.new-*")) == []


def test_data_of_another_version_is_named_and_left_alone(folder):
    data = folder / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")

    with pytest.raises(Fault, match="holds data of Postgres version 16, not 18"):
        EmbeddedPostgres(folder / "postgres").start()

    assert (data / "PG_VERSION").read_text() == "16\n"


def test_a_path_too_long_for_a_socket_is_no_obstacle(folder):
    deep = folder / ("a" * 60) / ("b" * 60)
    with EmbeddedPostgres(deep, fast=True) as server:
        assert query(server, "SHOW unix_socket_directories") == [("",)]


def test_a_path_with_spaces_and_quotes_is_no_obstacle(folder):
    with EmbeddedPostgres(folder / 'it\'s a "place"', fast=True) as server:
        assert query(server, "SELECT 1") == [(1,)]


def test_a_port_in_use_is_named_in_the_failure(folder, server):
    with pytest.raises(Fault, match=r"postgres did not start: .*could not create any TCP/IP sockets"):
        EmbeddedPostgres(folder / "other", port=server.port, fast=True).start()


def test_postgres_ends_when_the_one_who_started_it_is_killed(folder):
    starter = subprocess.Popen(
        [sys.executable, "-c", START_POSTGRES, str(folder / "postgres")], stdout=subprocess.PIPE, text=True
    )
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.communicate()

    eventually(lambda: gone(pid))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_root_without_user_namespaces_runs_it_as_nobody_in_a_folder_it_can_reach(folder, monkeypatch):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    open_base = Path("/tmp") / f"tip-test-{os.getpid()}"
    monkeypatch.setattr(rootless, "unprivileged_identity", lambda: "nobody")
    monkeypatch.setattr(rootless, "REACHABLE_BASE", open_base)
    try:
        server = EmbeddedPostgres(closed / "postgres", fast=True)
        with server:
            owner = Path(f"/proc/{server.pid}").stat().st_uid
            query(server, "CREATE TABLE kept AS SELECT 7 AS number")
            server.kill()
            server.start()
            assert query(server, "SELECT number FROM kept") == [(7,)]
    finally:
        subprocess.run(["rm", "-rf", str(open_base)], check=True)

    assert owner == 65534
    assert str(server.directory) in server.notice
    assert server.directory.parent == open_base
    assert closed.stat().st_mode & 0o777 == 0o700
