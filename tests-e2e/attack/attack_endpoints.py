"""What is served and what is documented: both must name the same endpoints, and each must have a rule."""

import asyncio
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

from attack_findings import Findings
from attack_http import HttpConnection, written
from attack_platform import Platform
from attack_rules import PAGES, RULES
from grpc_health.v1 import health

from chassis import config
from chassis.services import WEB_SERVICES
from stream_gateway import app
from stream_gateway.config import Config
from tip_testing.caller_matrix import template
from trading_proto import trading_pb2

PART = "matrix"
Endpoint = tuple[str, str, str]
"""Listener, method, path with `{names}`."""
_QUIET = {"HEAD", "OPTIONS"}


def compare(platform: Platform, findings: Findings) -> None:
    served = set(routed(platform))
    findings.note("endpoints", len(served))
    agree(served, set(documented(platform)), findings)


def agree(served: set[Endpoint], described: set[Endpoint], findings: Findings) -> None:
    """Whatever is in one and not in the other, or has no rule, is a finding."""
    ruled = {(rule.listener, rule.method, rule.path) for rule in RULES}
    pages = {(rule.listener, rule.method, rule.path) for rule in PAGES}
    for endpoint in served | described | ruled:
        findings.chosen(" ".join(endpoint))
    for endpoint in sorted(served - described - pages):
        findings.add(PART, "an endpoint is served and not documented", " ".join(endpoint), "")
    for endpoint in sorted(described - served):
        findings.add(PART, "an endpoint is documented and not served", " ".join(endpoint), "")
    for endpoint in sorted((served | described) - ruled):
        findings.add(PART, "an endpoint has no rule in attack_rules", " ".join(endpoint), "")
    for endpoint in sorted(ruled - served):
        findings.add(PART, "a rule is about an endpoint that is not served", " ".join(endpoint), "")


def routed(platform: Platform) -> Iterator[Endpoint]:
    """From the routing tables themselves."""
    for service in WEB_SERVICES:
        environment = {**platform.environment_of(service), "LOG_FORMAT": "json", "LOG_LEVEL": "error"}
        web = import_module(f"{service}.app").create_app(config.scoped(environment, f"{service.upper()}_"))
        for rule in web.url_map.iter_rules():
            for method in (rule.methods or set()) - _QUIET:
                yield "web", method, template(rule.rule)
    events = import_module("stream_gateway.routes.sse").create(None)
    for route in events.router.routes():
        if route.method not in _QUIET and route.resource is not None:
            yield "events", route.method, route.resource.canonical
            if route.resource.canonical.startswith("/v1/"):  # handed on, as by the ingress
                yield "web", route.method, route.resource.canonical
    for method in asyncio.run(_registered(platform)):
        yield "grpc", "gRPC", method


class _Recorder:
    """In the place of the gateway's gRPC server: notes what is registered, and serves nothing."""

    def __init__(self) -> None:
        self.methods: set[str] = set()

    def add_generic_rpc_handlers(self, handlers: Iterable[Any]) -> None:
        for handler in handlers:
            self.methods |= {method.removeprefix("/") for method in handler._method_handlers}

    def add_registered_method_handlers(self, service: str, handlers: Iterable[str]) -> None:
        self.methods |= {f"{service}/{name}" for name in handlers}

    def add_insecure_port(self, address: str) -> None:
        pass

    async def start(self) -> None:
        pass


async def _registered(platform: Platform) -> set[str]:
    """The gRPC methods that the gateway's own start registers, whatever file describes them."""
    as_in_make_up = {"REFLECTION": "true", "EVENTS_PORT": "0", "LOG_LEVEL": "error"}
    config = Config.from_env({**platform.environment_of("stream_gateway"), **as_in_make_up})
    recorder, gateway = _Recorder(), SimpleNamespace(config=config)
    with mock.patch("grpc.aio.server", return_value=recorder):
        async with app._listening(gateway, health.aio.HealthServicer()):
            return recorder.methods


def documented(platform: Platform) -> Iterator[Endpoint]:
    """From the documents as they are served."""
    for listener, address in (("web", platform.web), ("events", platform.events)):
        for method, path in operations(document(address)):
            yield listener, method, path
    for service in trading_pb2.DESCRIPTOR.services_by_name.values():
        for rpc in service.methods:
            yield "grpc", "gRPC", f"{service.full_name}/{rpc.name}"


def document(address: tuple[str, int]) -> dict[str, Any]:
    with HttpConnection(address) as http:
        found: dict[str, Any] = http.exchange(written("GET", "/openapi.json")).json()
    return found


def operations(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, methods in found["paths"].items():
        for method in methods:
            if method in ("get", "put", "post", "patch", "delete"):
                yield method.upper(), path
