"""The log epoch: a restored database begins a new one, exactly one, and nothing else does."""

import secrets
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg2
import pytest
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from chassis import db
from intents import store
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_testing.platform_plugin import Platform, migrate
from tip_testing.point_in_time import ArchivingPostgres
from tip_testing.servers_plugin import PostgresServer, drop_database
from tip_testing.waiting import eventually

NOTICED_AT_ONCE = 8


def engine_of(url: str) -> Engine:
    return create_engine(db.with_driver(url), poolclass=NullPool)


def read_epoch(url: str) -> UUID:
    with engine_of(url).begin() as tx:
        return store.current_epoch(tx)


def history(url: str) -> list[store.LogEpoch]:
    with engine_of(url).begin() as tx:
        return store.epochs(tx)


def execute(url: str, statement: str) -> None:
    connection = psycopg2.connect(url)
    connection.autocommit = True
    try:
        connection.cursor().execute(statement)
    finally:
        connection.close()


@contextmanager
def copy_of(server: PostgresServer, template: str) -> Iterator[str]:
    """The database copied within its server: what was snapshotted so and put back."""
    name = f"tip_copy_{secrets.token_hex(4)}"
    execute(server.url, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield server.url_of(name)
    finally:
        drop_database(server.url, name)


def test_a_new_installation_has_one_epoch_that_stays(fresh_platform: Platform) -> None:
    read = {read_epoch(fresh_platform.database_url("intents")) for _ in range(3)}

    assert read == {history(fresh_platform.admin_url)[-1].epoch}


def test_both_readers_see_the_same_epoch_with_their_own_rights(fresh_platform: Platform) -> None:
    urls = [fresh_platform.database_url(service) for service in ("intents", "stream_gateway")]

    assert len({read_epoch(url) for url in urls}) == 1
    for url in urls:
        with engine_of(url).connect() as tx:
            assert tx.exec_driver_sql("SELECT epoch FROM intents_api.log_epoch").scalar_one() == read_epoch(url)


def test_the_service_can_neither_write_nor_change_an_epoch(fresh_platform: Platform) -> None:
    for statement in (
        "INSERT INTO intents.log_epoch (number, reason, database_identity) VALUES (9, 'OPERATOR', '')",
        "UPDATE intents.log_epoch SET reason = 'OPERATOR'",
        "DELETE FROM intents.log_epoch",
    ):
        with engine_of(fresh_platform.database_url("intents")).begin() as tx, pytest.raises(ProgrammingError):
            tx.exec_driver_sql(statement)
    with engine_of(fresh_platform.admin_url).begin() as tx, pytest.raises(DBAPIError, match="append-only"):
        tx.exec_driver_sql("DELETE FROM intents.log_epoch")


def test_a_copied_database_begins_one_epoch_however_many_notice_it_at_once(
    postgres_server: PostgresServer, template_database: str
) -> None:
    before = history(postgres_server.url_of(template_database))
    with copy_of(postgres_server, template_database) as url, ThreadPoolExecutor(NOTICED_AT_ONCE) as threads:
        with engine_of(url).begin() as first:
            read = [store.current_epoch(first)]
            others = [threads.submit(read_epoch, url) for _ in range(NOTICED_AT_ONCE)]
            eventually(lambda: sessions_waiting(url) == NOTICED_AT_ONCE)
        read += [other.result() for other in others]
        after = history(url)

    assert after[:-1] == before
    assert after[-1].reason == "RESTORED"
    assert set(read) == {after[-1].epoch}


def sessions_waiting(url: str) -> int:
    with engine_of(url).connect() as tx:
        waiting = "wait_event_type = 'Lock' AND datname = current_database()"
        return int(tx.exec_driver_sql(f"SELECT count(*) FROM pg_stat_activity WHERE {waiting}").scalar_one())


def test_a_dump_restored_into_the_same_database_begins_an_epoch(
    postgres_server: PostgresServer, fresh_platform: Platform, tmp_path: Path
) -> None:
    before = read_epoch(fresh_platform.admin_url)
    restore(postgres_server, dump(postgres_server, fresh_platform.admin_url, tmp_path), fresh_platform.admin_url)

    assert read_epoch(fresh_platform.admin_url) != before
    assert [epoch.reason for epoch in history(fresh_platform.admin_url)][-1] == "RESTORED"


def test_a_dump_restored_into_another_cluster_begins_an_epoch(
    postgres_server: PostgresServer, fresh_platform: Platform, server_directory: Path, tmp_path: Path
) -> None:
    before = history(fresh_platform.admin_url)
    file = dump(postgres_server, fresh_platform.admin_url, tmp_path)
    with EmbeddedPostgres(server_directory / "another", fast=True) as another:
        migrate(another.url)  # makes the roles
        restore(postgres_server, file, another.url)
        read, after = {read_epoch(another.url) for _ in range(2)}, history(another.url)

    assert after[:-1] == before
    assert read == {after[-1].epoch}


def test_a_killed_database_comes_back_in_the_same_epoch(server_directory: Path) -> None:
    with EmbeddedPostgres(server_directory / f"killed-{secrets.token_hex(2)}", fast=True) as server:
        migrate(server.url)
        before = history(server.url)
        server.kill()
        server.start()

        assert read_epoch(server.url) == before[-1].epoch
        assert history(server.url) == before


def test_an_operator_begins_an_epoch_without_a_restore(fresh_platform: Platform) -> None:
    before = read_epoch(fresh_platform.admin_url)
    with engine_of(fresh_platform.admin_url).begin() as tx:
        begun = store.begin_epoch(tx)

    assert begun != before
    assert read_epoch(fresh_platform.database_url("stream_gateway")) == begun


@pytest.fixture
def archiving(server_directory: Path) -> Iterator[ArchivingPostgres]:
    with ArchivingPostgres(server_directory / f"archiving-{secrets.token_hex(2)}") as server:
        create_database(server.url, "tip")
        migrate(server.url_of("tip"))
        yield server


def test_a_recovery_to_a_point_in_time_begins_an_epoch_when_it_has_ended_and_not_before(
    archiving: ArchivingPostgres,
) -> None:
    url = archiving.url_of("tip")
    before = history(url)
    archiving.take_base_backup()
    archiving.mark("here")
    archiving.restore("here", pause=True)
    with engine_of(url).begin() as tx, pytest.raises(OperationalError, match="in recovery") as refused:
        store.current_epoch(tx)
    assert db.is_unavailable(refused.value)
    assert history(url) == before

    archiving.promote()

    assert read_epoch(url) == read_epoch(url)
    assert [epoch.reason for epoch in history(url)] == ["INSTALLED", "RESTORED"]


def test_files_put_back_are_not_noticed_until_the_operator_begins_an_epoch(archiving: ArchivingPostgres) -> None:
    url, copy = archiving.url_of("tip"), archiving.directory / "copy"
    before = read_epoch(url)
    archiving.stop()
    subprocess.run(["cp", "-a", str(archiving.data), str(copy)], check=True)
    archiving.start()
    archiving.put_files_back(copy)
    assert read_epoch(url) == before

    with engine_of(url).begin() as tx:
        begun = store.begin_epoch(tx)

    assert read_epoch(url) == begun != before


def dump(server: PostgresServer, url: str, folder: Path) -> Path:
    file = folder / "tip.dump"
    command = [program(server, "pg_dump"), "-Fc", f"--file={file}", url]
    subprocess.run(command, check=True, capture_output=True)
    return file


def restore(server: PostgresServer, file: Path, url: str) -> None:
    options = ["--clean", "--if-exists", "--exit-on-error"]
    command = [program(server, "pg_restore"), *options, f"--dbname={url}", str(file)]
    subprocess.run(command, check=True, capture_output=True)


def program(server: PostgresServer, name: str) -> str:
    return str(server.embedded.binary(name)) if server.embedded else name
