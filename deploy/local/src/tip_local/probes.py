"""Is it there? Each answers quickly and never raises, or says in one line what is wrong."""

import http.client
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import psycopg2
import redis

from tip_local.errors import Fault
from tip_local.valkey import ONCE

PROBE_SECONDS = 1.0
CONNECT_SECONDS = 5
OLDEST_POSTGRES = 15

Probe = Callable[[], bool]


def answers(port: int, path: str) -> Probe:
    """A GET on loopback that is answered with 200. Not through a proxy, whatever the environment says."""

    def probe() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe


def listens(port: int) -> Probe:
    def probe() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PROBE_SECONDS).close()
        except OSError:
            return False
        return True

    return probe


def require_postgres(url: str) -> None:
    if urlsplit(url).scheme != "postgresql":
        raise Fault("DATABASE_URL must look like postgresql://user:password@host:port/database")
    try:
        connection = psycopg2.connect(url, connect_timeout=CONNECT_SECONDS)
    except psycopg2.Error as error:
        raise Fault(f"DATABASE_URL: no Postgres there: {one_line(error)}") from error
    version = connection.server_version // 10_000
    connection.close()
    if version < OLDEST_POSTGRES:
        raise Fault(f"DATABASE_URL: Postgres {version} is too old, {OLDEST_POSTGRES} or newer is needed")


def require_redis(url: str) -> None:
    try:
        client = redis.Redis.from_url(
            url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS, retry=ONCE
        )
        client.ping()
        client.close()
    except ValueError as error:
        raise Fault("REDIS_URL must look like redis://:password@host:port/0") from error
    except redis.RedisError as error:
        raise Fault(f"REDIS_URL: no Redis there: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    """What an error says first, without the statement or the address book that some drivers append."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
