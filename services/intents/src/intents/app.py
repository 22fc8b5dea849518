"""intents, wired."""

import os
from collections.abc import Mapping

from flask import Flask

from chassis import db, logs, web
from chassis.config import stop_on_bad_configuration
from chassis.cursors import Cursors
from chassis.hints import LogHeadHints
from chassis.outbox import Outbox
from intents import (
    descriptions,
    routes,
    routes_bulk,
    routes_holdings,
    routes_orders,
    routes_statements,
    routes_submits,
    store,
    usecases,
)
from intents.config import Config
from intents.model.events import EVENT_TYPES
from intents.submit_fast_path import SubmitFastPath
from intents.usecases.deps import Freshness


def create_app(environment: Mapping[str, str] = os.environ) -> Flask:
    with stop_on_bad_configuration("intents"):
        config = Config.from_env(environment)
    deps = dependencies(config)
    logs.configure("intents", log_format=config.log_format, level=config.log_level)
    return web.create(
        "intents",
        config,
        deps.engine,
        [routes_submits.bp, routes_holdings.bp, routes_statements.bp, routes_bulk.bp, routes_orders.bp],
        statuses=routes.STATUSES,
        extensions={"deps": deps, "cursors": Cursors(config.cursor_key), **descriptions.EXTENSIONS},
    )


def create_front(environment: Mapping[str, str] = os.environ) -> SubmitFastPath:
    """What gunicorn serves: the app, and in front of it the fast path for submits."""
    return SubmitFastPath(create_app(environment))


def dependencies(config: Config, name: str = "intents") -> usecases.Deps:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    outbox = Outbox(engine, store.SCHEMA, event_types=EVENT_TYPES, attempt_limit=config.outbox_attempt_limit)
    hints = LogHeadHints(config.queues)
    freshness = Freshness(config.quote_seconds, config.quote_wait_seconds)
    return usecases.Deps(engine, store.PreparedConnections(engine), outbox, hints, config.price_max_age, freshness)
