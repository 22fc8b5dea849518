"""The chassis is tested on identity's schema: any service's outbox is the same code on the same tables."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from chassis import db
from chassis.outbox import Outbox
from chassis.queues import Publisher
from tip_testing.outbox import empty
from tip_testing.platform_plugin import Platform
from tip_testing.servers_plugin import ValkeyServer

from .served import Server

SCHEMA = "identity"
ATTEMPT_LIMIT = 3


@pytest.fixture
def engine(platform: Platform) -> Iterator[Engine]:
    with platform.admin() as admin:
        empty(admin, SCHEMA)
    engine = db.engine(platform.database_url(SCHEMA), pool_size=8, name="tests")
    yield engine
    engine.dispose()


@pytest.fixture
def outbox(engine: Engine) -> Outbox:
    return Outbox(engine, SCHEMA, attempt_limit=ATTEMPT_LIMIT)


@pytest.fixture
def queue() -> str:
    return f"tip.test.{uuid4().hex}"


@pytest.fixture
def publisher(valkey_server: ValkeyServer) -> Iterator[Publisher]:
    publisher = Publisher(valkey_server.url)
    yield publisher
    publisher.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()
