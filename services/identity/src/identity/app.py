"""identity, wired."""

import os
from collections.abc import Mapping

from flask import Flask

from chassis import db, logs, web
from chassis.config import stop_on_bad_configuration
from chassis.cursors import Cursors
from chassis.outbox import Outbox
from chassis.ratelimit import RateLimit
from identity import descriptions, routes, store, usecases
from identity.config import Config, WorkerConfig
from identity.model import EVENT_TYPES
from identity.providers.configured import provider
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
        routes.BLUEPRINTS,
        statuses=routes.STATUSES,
        extensions={
            **descriptions.EXTENSIONS,
            "deps": deps,
            "cursors": Cursors(config.cursor_key),
            "public_url": (config.public_url or config.token_issuer).rstrip("/"),
            "validate_limit": RateLimit(config.redis_url, per_minute=config.validate_per_minute, name="validate"),
            "invitation_limit": RateLimit(
                config.redis_url, per_minute=config.invitations_per_minute, name="invitation"
            ),
            "token_limit": RateLimit(config.redis_url, per_minute=config.token_per_minute, name="token"),
            "login_limit": RateLimit(config.redis_url, per_minute=config.login_per_minute, name="login"),
            "person_limit": RateLimit(config.redis_url, per_minute=10 * config.login_per_minute, name="person"),
        },
    )


def dependencies(config: WorkerConfig, name: str = "identity") -> usecases.Deps:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    outbox = Outbox(engine, store.SCHEMA, event_types=EVENT_TYPES, attempt_limit=config.outbox_attempt_limit)
    signer = Signer(
        config.signing_key_encryption_keys,
        issuer=config.token_issuer,
        audience=config.token_audience,
        lifetime_s=config.token_lifetime_seconds,
    )
    return usecases.Deps(engine, outbox, signer, provider(config), config.limits, config.user_token_lifetime_seconds)
