"""Every endpoint of every service takes the query parameters that it declares, once each, and no others.

The cases come from the routing tables, so that a new endpoint is among them.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from chassis.principals import Alternative, Kind, Role
from chassis.services import WEB_SERVICES
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

WRITTEN = ("identity.outbox", "accounts.outbox", "controls.outbox", "intents.outbox")

Callers = Mapping[Kind | None, Mapping[str, str]]


class Endpoint(NamedTuple):
    app: Flask
    method: str
    path: str
    view: Any

    def request(self, callers: Callers, query: str) -> TestResponse:
        headers = callers[_kind(getattr(self.view, "alternatives", ()))]
        path = re.sub(r"<[^<>]+>", lambda _: str(uuid4()), self.path)
        return self.app.test_client().open(f"{path}?{query}", method=self.method, headers=headers)

    def refuses(self, callers: Callers, query: str, code: str) -> bool:
        answer = self.request(callers, query)
        for_people = hasattr(self.view, "plain_text_errors") or answer.mimetype == "text/html"
        return answer.status_code == 400 and (for_people or answer.json["code"] == code)


def _kind(alternatives: tuple[Alternative, ...]) -> Kind | None:
    """A kind of caller that the endpoint admits, with the credentials that the tests have for it."""
    admitted = {
        alternative.kind for alternative in alternatives if not alternative.roles or Role.ADMIN in alternative.roles
    }
    return next((kind for kind in (Kind.USER, Kind.API_KEY, Kind.SERVICE_ACCOUNT) if kind in admitted), None)


@pytest.fixture(scope="module")
def endpoints(platform: Platform) -> list[Endpoint]:
    apps = [import_module(f"{name}.app").create_app(platform.web_environment(name)) for name in WEB_SERVICES]
    return list(chain.from_iterable(_endpoints(app) for app in apps))


def _endpoints(app: Flask) -> Iterator[Endpoint]:
    for rule in app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield Endpoint(app, method, rule.rule, app.view_functions[rule.endpoint])


@pytest.fixture(scope="module")
def callers(identity: IdentityFixtures) -> Callers:
    organization = identity.organization(entitlements=("controls_premium", "trading_live"))
    service = {
        "Authorization": f"Bearer {identity.service_account().token}",
        "x-organization-id": str(organization.id),
    }
    return {
        Kind.USER: {"Authorization": f"Bearer {organization.tokens['admin']}"},
        Kind.API_KEY: {"x-api-key": organization.api_keys["paper"]},
        Kind.SERVICE_ACCOUNT: service,
        None: {},
    }


def test_a_parameter_that_an_endpoint_does_not_declare_is_refused_everywhere(
    endpoints: list[Endpoint], callers: Callers, platform: Platform
) -> None:
    assert len(endpoints) > 60
    before = _written(platform)

    lax = [
        f"{endpoint.method} {endpoint.path}?{query}"
        for endpoint in endpoints
        for query in ("unknown=1", "=1", "dry_run[]=true")
        if not endpoint.refuses(callers, query, "unknown_query")
    ]

    assert lax == []
    assert _written(platform) == before


def test_a_parameter_that_is_given_twice_is_refused_everywhere(endpoints: list[Endpoint], callers: Callers) -> None:
    declaring = [
        endpoint for endpoint in endpoints if getattr(getattr(endpoint.view, "description", None), "query", None)
    ]
    assert len(declaring) > 10

    lax = [
        f"{endpoint.method} {endpoint.path}?{name}"
        for endpoint in declaring
        for name in endpoint.view.description.query
        if not endpoint.refuses(callers, f"{name}=1&{name}=1", "repeated_query")
    ]

    assert lax == []


def test_a_caller_without_access_learns_nothing_of_the_parameters(endpoints: list[Endpoint], callers: Callers) -> None:
    guarded = [endpoint for endpoint in endpoints if getattr(endpoint.view, "alternatives", ())]
    nobody: Callers = {kind: {} for kind in callers}

    assert {endpoint.request(nobody, "unknown=1").status_code for endpoint in guarded} == {401}


def _written(platform: Platform) -> list[int]:
    with platform.admin() as connection:
        return [connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one() for name in WRITTEN]
