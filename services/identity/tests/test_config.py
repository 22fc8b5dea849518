"""What identity refuses to start with, and the documents it serves about itself."""

import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from chassis.config import BadConfiguration
from identity.app import create_app
from identity.config import Config
from tip_testing.platform_plugin import Platform


@pytest.mark.parametrize("variable", ["SIGNING_KEY_ENCRYPTION_KEY", "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS"])
def test_a_key_that_is_no_key_is_named_and_not_quoted(
    platform: Platform, variable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        create_app(platform.web_environment("identity", **{variable: "c2hvcnQ="}))

    errors = capsys.readouterr().err
    assert errors.startswith(f"identity: configuration: {variable}: ") and "c2hvcnQ" not in errors


@pytest.mark.parametrize(
    "variable",
    [
        "VALIDATE_RATE_LIMIT_PER_MINUTE",
        "TOKEN_RATE_LIMIT_PER_MINUTE",
        "LOGIN_RATE_LIMIT_PER_MINUTE",
        "TOKEN_LIFETIME_SECONDS",
        "USER_TOKEN_LIFETIME_SECONDS",
    ],
)
@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_limit_that_would_let_nobody_in_does_not_start(platform: Platform, variable: str, value: str) -> None:
    with pytest.raises(BadConfiguration, match=f"^{variable}: must be at least 1$"):
        Config.from_env(platform.environment("identity", **{variable: value}))


def test_what_every_service_checks_of_its_configuration_identity_checks_too(platform: Platform) -> None:
    with pytest.raises(BadConfiguration, match=r"^RATE_LIMIT_PER_MINUTE: "):
        Config.from_env(platform.environment("identity", RATE_LIMIT_PER_MINUTE="0"))


def test_the_document_describes_every_endpoint(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    described = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}

    assert ("DELETE", "/v1/users/me") in described and ("POST", "/oauth/token") in described
    assert len(described) == 45
    assert client.get("/docs").status_code == 200


def test_the_readme_names_every_variable_every_endpoint_and_no_other(client: FlaskClient) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    environment = readme.split("## Environment")[1].split("## Messages")[0]

    assert set(re.findall(r"`([A-Z_]{4,})`", environment)) == {row[0] for row in Config.documentation()}
    for path in client.get("/openapi.json").json["paths"]:
        last = path.rpartition("/")[2]
        assert last.startswith("{") or f"/{last}" in readme, path
