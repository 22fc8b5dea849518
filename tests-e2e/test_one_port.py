"""One port for four services: every route reaches the service that has it."""

import pytest
from flask import Flask
from werkzeug.test import Client

from chassis import migrations
from chassis.config import scoped
from chassis.services import WEB_SERVICES
from tip_local.web import create_app, service_of
from tip_testing.platform_plugin import Platform


@pytest.fixture(scope="module")
def environment(platform: Platform) -> dict[str, str]:
    names = {service: migrations.web_name(service) for service in WEB_SERVICES}
    urls = {f"{service.upper()}_DATABASE_URL": platform.database_url(name) for service, name in names.items()}
    return {**platform.environment("accounts"), **platform.environment("identity"), **urls}


@pytest.mark.parametrize("service", WEB_SERVICES)
def test_every_route_of_a_service_is_sent_to_it(environment: dict[str, str], service: str) -> None:
    module = __import__(f"{service}.app", fromlist=["create_app"])
    app: Flask = module.create_app(scoped(environment, f"{service.upper()}_"))
    own = [rule.rule for rule in app.url_map.iter_rules() if not rule.endpoint.startswith("operations.")]

    assert own
    assert {rule: service_of(rule.replace("<", "").replace(">", "")) for rule in own} == dict.fromkeys(own, service)


@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("/v1/accounts/outbox/health", "accounts"),
        ("/v1/accounts", "accounts"),
        ("/v1/accounts/a-uuid", "accounts"),
        ("/v1/accounts/a-uuid/credentials", "accounts"),
        ("/v1/accounts/a-uuid/intents", "intents"),
        ("/v1/accounts/a-uuid/intents/stats", "intents"),
        ("/v1/accounts/a-uuid/intentsx", "accounts"),
        ("/v1/controls/accounts/a-uuid/symbols/AAPL", "controls"),
        ("/api/v1/auth/api-key/validate", "identity"),
        ("/oauth/token", "identity"),
        ("/openapi.json", None),
    ],
)
def test_each_path_reaches_its_own_service(path: str, service: str | None) -> None:
    assert service_of(path) == service


def test_the_whole_api_is_one_document_and_one_page(environment: dict[str, str]) -> None:
    client = Client(create_app(environment))

    document = client.get("/openapi.json").json
    assert document is not None
    tags = {operation["tags"][0] for path in document["paths"].values() for operation in path.values()}
    assert tags == {*WEB_SERVICES, "stream"}
    assert "servers" not in document["paths"]["/v1/accounts/{account_id}/events"]["get"], "it is at the same address"
    assert "/v1/accounts/outbox/health" in client.get("/docs").text
    assert client.get("/health/ready").status_code == 200


def test_what_no_service_has_is_refused_in_the_same_form(environment: dict[str, str]) -> None:
    client = Client(create_app(environment))

    for answer in (client.get("/nope"), client.post("/health/live"), client.get("/v1")):
        assert answer.content_type == "application/problem+json"
        assert answer.headers["X-Request-Id"]


def test_the_platform_is_not_ready_while_a_service_is_not(environment: dict[str, str]) -> None:
    nowhere = "postgresql://tip_accounts:x@127.0.0.1:1/tip"
    client = Client(create_app({**environment, "ACCOUNTS_DATABASE_URL": nowhere}))

    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json) == (503, {"status": "waiting", "waiting_for": ["accounts"]})
