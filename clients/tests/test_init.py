"""`tip init`, on a database of its own."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

from identity.app import create_app
from tip import cli
from tip_local.home import Home
from tip_local.stack import Stack
from tip_testing.platform_plugin import Platform

ACME = ("init", "--organization", "Acme", "--admin", "Alice@acme.com")
CODE = re.compile(r"([0-9A-Z]{5}(-[0-9A-Z]{5}){3})\n")


@pytest.fixture
def on_this_machine(fresh_platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """A home that looks as if the platform ran in it, on the test's database."""
    monkeypatch.setenv("TIP_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", fresh_platform.admin_url)
    monkeypatch.setattr(Stack, "signing_env", fresh_platform.administrator_environment("identity"))
    monkeypatch.setattr(Home, "running_pid", lambda _: 1)
    return fresh_platform


@pytest.fixture
def in_identitys_container(fresh_platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """The environment of identity's web process, as a container, a pod or a secret store gives it."""
    for name, value in fresh_platform.web_environment("identity").items():
        monkeypatch.setenv(name, value)
    return fresh_platform


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.main, words)


def set_password(platform: Platform, output: str) -> int:
    """What the page answers to the code that was printed."""
    [(code, _)] = CODE.findall(output)
    client = create_app(platform.web_environment("identity", PUBLIC_URL="http://localhost")).test_client()
    [csrf] = re.findall(r'name="csrf" value="(\w+)"', client.get("/login/code").text)
    form = {"csrf": csrf, "email": "alice@acme.com", "code": code, "password": "correct horse battery"}
    return client.post("/login/code", data=form).status_code


def counts(platform: Platform) -> tuple[int, int, int]:
    tables = ("organization", "membership", "service_account")
    with platform.admin() as connection:
        found = [connection.execute(text(f"SELECT count(*) FROM identity.{table}")).scalar_one() for table in tables]
    return found[0], found[1], found[2]


@pytest.mark.parametrize("where", ["on_this_machine", "in_identitys_container"])
def test_an_empty_installation_gets_an_organization_an_admin_and_an_operator(
    where: str, request: pytest.FixtureRequest
) -> None:
    platform: Platform = request.getfixturevalue(where)

    first = run(*ACME)

    assert first.exit_code == 0, first.output
    assert counts(platform) == (1, 1, 1)
    assert "made organization Acme" in first.output and "made admin alice@acme.com" in first.output
    assert "shown this once" in first.output
    assert set_password(platform, first.output) == 303


def test_running_it_again_makes_nothing_twice_and_replaces_the_code(on_this_machine: Platform) -> None:
    first, second = run(*ACME), run(*ACME)

    assert counts(on_this_machine) == (1, 1, 1)
    assert second.output.count("there already:") == 3 and "shown this once" not in second.output
    assert set_password(on_this_machine, first.output) == 403
    assert set_password(on_this_machine, second.output) == 303
    third = run(*ACME)
    assert "the admin has a password" in third.output and not CODE.findall(third.output)


def test_where_people_sign_in_at_another_provider_it_refuses(
    in_identitys_container: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = {"OIDC_ISSUER": "http://127.0.0.1:1", "OIDC_SCIM_URL": "http://127.0.0.1:1", "OIDC_DELETE_TOKEN": "x"}
    for name, value in provider.items():
        monkeypatch.setenv(name, value)

    answer = run(*ACME)

    assert answer.exit_code == 1 and "OpenID Connect provider" in answer.output
    assert counts(in_identitys_container) == (0, 0, 0)


def test_an_admin_is_an_address(on_this_machine: Platform) -> None:
    assert run("init", "--organization", "Acme", "--admin", "alice").exit_code == 1
    assert counts(on_this_machine) == (0, 0, 0)
