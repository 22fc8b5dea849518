"""controls, wired."""

import os
from collections.abc import Mapping
from datetime import timedelta

from flask import Flask

from chassis import db, logs, web
from chassis.config import stop_on_bad_configuration
from chassis.cursors import Cursors
from chassis.outbox import Outbox
from controls import descriptions, routes, store, usecases
from controls.config import Config
from controls.model import EVENT_TYPES
from controls.paths import WholeSegments


def create_app(environment: Mapping[str, str] = os.environ) -> Flask:
    with stop_on_bad_configuration("controls"):
        config = Config.from_env(environment)
    deps = dependencies(config)
    logs.configure("controls", log_format=config.log_format, level=config.log_level)
    app = web.create(
        "controls",
        config,
        deps.engine,
        [routes.bp],
        statuses=routes.STATUSES,
        extensions={"deps": deps, "cursors": Cursors(config.cursor_key), **descriptions.EXTENSIONS},
    )
    app.wsgi_app = WholeSegments(app.wsgi_app)  # type: ignore[method-assign]
    return app


def dependencies(config: Config, name: str = "controls") -> usecases.Deps:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    outbox = Outbox(engine, store.SCHEMA, event_types=EVENT_TYPES, attempt_limit=config.outbox_attempt_limit)
    return usecases.Deps(
        engine,
        outbox,
        price_max_age=timedelta(seconds=config.reference_price_max_age_seconds),
        quote_seconds=config.quote_seconds,
        quote_wait_seconds=config.quote_wait_seconds,
    )
