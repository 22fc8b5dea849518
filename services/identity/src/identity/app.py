"""identity, wired."""

import os
from collections.abc import Mapping

from flask import Flask

from chassis import db, logs, sealing, web
from chassis.config import stop_on_bad_configuration
from chassis.outbox import Outbox
from chassis.ratelimit import RateLimit
from identity import routes, store, usecases
from identity.config import Config
from identity.signing import Signer


def create_app(environment: Mapping[str, str] = os.environ) -> Flask:
    with stop_on_bad_configuration("identity"):
        config = Config.from_env(environment)
        deps = dependencies(config)
    logs.configure("identity", log_format=config.log_format, level=config.log_level)
    return web.create(
        "identity",
        config,
        deps.engine,
        [routes.bp],
        statuses=routes.STATUSES,
        extensions={
            "deps": deps,
            "validate_limit": RateLimit(config.redis_url, per_minute=config.validate_per_minute, name="validate"),
        },
    )


def dependencies(config: Config) -> usecases.Deps:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name="identity")
    outbox = Outbox(engine, store.SCHEMA, attempt_limit=config.outbox_attempt_limit)
    signer = Signer(
        sealing.decode_key(config.key_encryption_key, "KEY_ENCRYPTION_KEY"),
        issuer=config.token_issuer,
        audience=config.token_audience,
        lifetime_s=config.token_lifetime_seconds,
    )
    return usecases.Deps(engine, outbox, signer)
