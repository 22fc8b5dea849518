"""Every place where the platform leaves something behind, as bytes to be searched."""

import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg2
import redis
from attack_http import HttpConnection, written
from attack_platform import Platform

Place = tuple[str, bytes]
_RELATIONS = """
    SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1
"""


def files(platform: Platform, *, of_postgres: bool) -> Iterator[Place]:
    """Logs, counters, and what the servers have on disk: tables, the write-ahead log, Valkey's own log."""
    folders = ("logs", "metrics", "valkey", "paper-broker", *(("postgres",) if of_postgres else ()))
    for folder in folders:
        for path in sorted((platform.home / folder).rglob("*")):
            if path.is_file() and not _private(path):
                with suppress(OSError):
                    yield str(path.relative_to(platform.home)), path.read_bytes()


def _private(path: Path) -> bool:
    """Where a server's own password has to be: files that only it can read."""
    return path.name in ("password", "pgpass", ".pgpass") or path.suffix in (".conf", ".secret")


def rows(admin_url: str) -> Iterator[Place]:
    """Every relation as a dump has it, and what sessions are doing. Bytes are shown in hexadecimal."""
    connection = psycopg2.connect(admin_url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(_RELATIONS)
        for (relation,) in cursor.fetchall():
            copied = io.StringIO()
            cursor.copy_expert(f"COPY (SELECT * FROM {relation}) TO STDOUT", copied)
            yield f"the relation {relation}", copied.getvalue().encode()
        cursor.execute(
            "SELECT coalesce(string_agg(query, E'\\n'), '') FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        )
        yield "pg_stat_activity", str(cursor.fetchone()[0]).encode()
    connection.close()


def valkey(platform: Platform) -> Iterator[Place]:
    with redis.Redis.from_url(platform.stack.redis_url) as client:
        for key in client.scan_iter(count=1000):
            yield f"the key {key!r} of Valkey", key + b" " + _value(client, key)
        yield "the slow log of Valkey", str(client.slowlog_get(1000)).encode()


def _value(client: "redis.Redis", key: bytes) -> bytes:
    kind = client.type(key)
    if kind == b"string":
        return client.get(key) or b""
    if kind == b"list":
        return b" ".join(client.lrange(key, 0, -1))
    if kind == b"hash":
        return b" ".join(part for pair in client.hgetall(key).items() for part in pair)
    members = client.smembers(key) if kind == b"set" else client.zrange(key, 0, -1) if kind == b"zset" else ()
    return b" ".join(members)


def metrics(platform: Platform) -> Iterator[Place]:
    for address, path in ((platform.web, "/metrics"), (platform.web, "/docs"), (platform.events, "/docs")):
        with HttpConnection(address) as http:
            yield f"{path} of port {address[1]}", http.exchange(written("GET", path)).body


def environments(platform: Platform) -> Iterator[tuple[str, bytes, bytes]]:
    """Name, environment and command line of every process of the platform and of all that these have started."""
    named = {process["pid"]: process["name"] for process in platform.stack.home.state()["processes"] if process["pid"]}
    for pid, name in named.items():
        for process_id in (pid, *_descendants(pid)):
            with suppress(OSError):
                folder = Path(f"/proc/{process_id}")
                environment = (folder / "environ").read_bytes().replace(b"\0", b"\n")
                yield name, environment, (folder / "cmdline").read_bytes().replace(b"\0", b" ")


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(word)
            yield from _descendants(int(word))
