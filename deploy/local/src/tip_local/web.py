"""The web services and the console behind one port, like the ingress: `gunicorn 'tip_local.web:create_front()'`."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from flask import Flask, Response, jsonify
from flask.typing import ResponseReturnValue

from chassis import config, logs, metrics, openapi, reference, web
from chassis.asgi import Bridge, MatchRoute, Wsgi
from chassis.services import WEB_SERVICES
from tip_local.events_front import EventsFront
from tip_local.process_table import module_exists

# The first pattern that matches decides. deploy/ingress has the same table.
ROUTES: tuple[tuple[str, str], ...] = (
    (
        r"/v1/accounts/[^/]+/(intents|orders|refusals|positions|balances|statement|bulk-operations|quotes|refresh)(/.*)?",
        "intents",
    ),
    (r"/\.well-known/log-jwks\.json", "intents"),
    (r"/v1/(accounts|brokers)(/.*)?", "accounts"),
    (r"/v1/controls(/.*)?", "controls"),
    (r"/login(/.*)?", "identity"),
    (r"/(api/v1|v1|oauth|\.well-known)/.*", "identity"),
    (r"/(console(/.*)?)?", "console"),
    (r"/manual(/.*)?", "console"),
)
PAGES = ("console",)
"""For people and not for programs, so not in the document of the API."""
_COMPILED = tuple((re.compile(pattern, re.DOTALL), service) for pattern, service in ROUTES)


def service_of(path: str) -> str | None:
    """The service that answers for the path; None for the platform's own pages."""
    return next((service for pattern, service in _COMPILED if pattern.fullmatch(path)), None)


def create_front(environment: Mapping[str, str] = os.environ) -> Bridge:
    """What gunicorn serves: with the event stream, and the fast path for submits that intents has in front."""
    apps = _apps(environment)
    app_of = _dispatcher(apps)
    front = EventsFront(apps["intents"], _dispatching(app_of), _matching(app_of))
    front.gateway = environment.get("EVENTS_URL")
    return front


def create_app(environment: Mapping[str, str] = os.environ) -> Wsgi:
    return _dispatching(_dispatcher(_apps(environment)))


def _apps(environment: Mapping[str, str]) -> dict[str, Flask]:
    apps = {
        service: import_module(f"{service}.app").create_app(config.scoped(environment, f"{service.upper()}_"))
        for service in (*WEB_SERVICES, *PAGES)
        if module_exists(f"{service}.app")
    }
    # Each has just named the log's lines after itself; they are all of this process.
    log_format, level = environment.get("LOG_FORMAT", "auto"), environment.get("LOG_LEVEL", "info")
    logs.configure(environment.get("WEB_NAME", "web"), log_format=log_format, level=level)
    return apps


def _dispatcher(apps: Mapping[str, Flask]) -> Callable[[str], Flask]:
    """The app that answers for a path."""
    platform = _platform(list(apps.values()), _gateway_routes())
    return lambda path: apps.get(service_of(path) or "", platform)


def _matching(app_of: Callable[[str], Flask]) -> MatchRoute:
    return lambda method, path: web.match_route(app_of(path), method, path)


def _dispatching(app_of: Callable[[str], Flask]) -> Wsgi:
    def dispatch(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return app_of(environ.get("PATH_INFO", "")).wsgi_app(environ, start_response)

    return dispatch


def _gateway_routes() -> list[openapi.Route]:
    """What belongs into the document although it is handed on to another process."""
    if not module_exists("stream_gateway.routes.document"):
        return []
    return list(import_module("stream_gateway.routes.document").ROUTES)


def _platform(apps: list[Flask], gateway_routes: list[openapi.Route]) -> Flask:
    """What is about the whole: health, metrics, the one document of the API."""
    platform = web.bare("platform", {})
    services = [app for app in apps if app.name not in PAGES]
    reference.serve(platform, partial(openapi.document, services, gateway_routes))

    @platform.get("/health/live")
    def live() -> ResponseReturnValue:
        return jsonify(status="live")

    @platform.get("/health/ready")
    def ready() -> ResponseReturnValue:
        states = {app.name: app.test_client().get("/health/ready").status_code for app in apps}
        waiting = sorted(name for name, status in states.items() if status != 200)
        return jsonify(status="waiting" if waiting else "ready", waiting_for=waiting), 503 if waiting else 200

    @platform.get("/metrics")
    def exposed() -> ResponseReturnValue:
        return Response(metrics.exposition(), content_type="text/plain; version=0.0.4")

    return platform
