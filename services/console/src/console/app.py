"""The console, wired."""

import os
from collections.abc import Mapping

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from chassis import logs, presence, web
from chassis.callers import Callers
from chassis.config import stop_on_bad_configuration
from console import routes
from console.api import Api
from console.config import Config
from console.providers import Providers
from console.store import Sessions
from console.usecases import Deps


def create_app(environment: Mapping[str, str] = os.environ) -> Flask:
    with stop_on_bad_configuration("console"):
        config = Config.from_env(environment)
    logs.configure("console", log_format=config.log_format, level=config.log_level)
    app = web.bare("console", routes.STATUSES)
    if config.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=config.trusted_proxies)  # type: ignore[method-assign]
    app.extensions |= {
        "callers": Callers(trusted_proxies=config.trusted_proxies, presence=presence.OF_WORKERS),
        "deps": dependencies(config),
        "origin": config.origin,
    }
    routes.register(app)
    return app


def dependencies(config: Config) -> Deps:
    api = Api(config.api, config.api_ca)
    return Deps(api, Sessions(config.redis_url, config.cursor_key), Providers(config, api))
