"""Configuration: read once, frozen, and a bad one stops the process naming what is wrong."""

import dataclasses
import os
import subprocess
import sys

import pytest

from chassis.config import BadConfiguration, ServiceConfig, scoped

GOOD = {"DATABASE_URL": "postgresql://a:word@127.0.0.1/tip", "REDIS_URL": "redis://127.0.0.1", "CURSOR_KEY": "x"}


def test_defaults_hold_where_nothing_is_set() -> None:
    config = ServiceConfig.from_env(GOOD)

    assert (config.rate_limit_per_minute, config.outbox_attempt_limit, config.queues) == (6000, 10, "redis://127.0.0.1")


def test_every_missing_or_bad_variable_is_named_at_once() -> None:
    with pytest.raises(BadConfiguration) as refusal:
        ServiceConfig.from_env({"REDIS_URL": "redis://", "RATE_LIMIT_PER_MINUTE": "many", "TRUSTED_PROXIES": "x"})

    assert [line.split(":")[0] for line in str(refusal.value).splitlines()] == [
        "DATABASE_URL",
        "RATE_LIMIT_PER_MINUTE",
        "TRUSTED_PROXIES",
        "CURSOR_KEY",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"LOG_FORMAT": "xml"},
        {"LOG_LEVEL": "loud"},
        {"RATE_LIMIT_PER_MINUTE": "0"},
        {"DATABASE_POOL_SIZE": "0"},
        {"OUTBOX_KEEP_DAYS": "0"},
        {"OUTBOX_ATTEMPT_LIMIT": "-1"},
        {"TRUSTED_PROXIES": "-1"},
        {"DATABASE_URL": "nonsense"},
        {"DATABASE_URL": "postgresql://a:b@127.0.0.1:port/tip"},
        {"REDIS_URL": "nonsense"},
        {"OIDC_ROLES": "boss=king"},
    ],
)
def test_a_value_outside_its_range_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(BadConfiguration, match=next(iter(change))):
        ServiceConfig.from_env({**GOOD, **change})


def test_a_configuration_cannot_be_changed_and_does_not_show_secrets() -> None:
    config = ServiceConfig.from_env(GOOD)

    assert "word" not in repr(config)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.log_level = "debug"  # type: ignore[misc]


def test_every_setting_says_what_it_is_for() -> None:
    assert all(variable.isupper() and meaning for variable, _, meaning in ServiceConfig.documentation())


def test_a_process_with_a_bad_configuration_says_so_in_one_line_and_exits_with_2() -> None:
    environment = {"PATH": os.environ["PATH"], **GOOD}
    environment.pop("DATABASE_URL")

    ended = subprocess.run(
        [sys.executable, "-m", "identity.worker", "relay"], env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "identity-relay: configuration: DATABASE_URL: is required and not set (Postgres, as the service's own role)"
    ]


@pytest.mark.parametrize("value", ["abc", "0", "70000", "80 80"])
def test_a_web_process_names_the_port_it_cannot_use(value: str) -> None:
    environment = {"PATH": os.environ["PATH"], "WEB_PORT": value}
    command = [sys.executable, "-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "identity.app:create_app()"]

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)

    assert ended.returncode == 2
    assert ended.stderr.splitlines() == ["web: configuration: WEB_PORT: must be a number from 1 to 65535"]


def test_a_services_own_variable_stands_before_the_common_one() -> None:
    environment = {"DATABASE_URL": "common", "IDENTITY_DATABASE_URL": "own", "REDIS_URL": "r"}

    assert scoped(environment, "IDENTITY_")["DATABASE_URL"] == "own"
    assert scoped(environment, "ACCOUNTS_")["DATABASE_URL"] == "common"


def test_the_provider_of_users_must_not_be_ourselves() -> None:
    environment = {"DATABASE_URL": "postgresql://x/x", "REDIS_URL": "redis://x", "CURSOR_KEY": "x"}
    environment |= {"TOKEN_ISSUER": "https://a", "OIDC_ISSUER": "https://a"}
    with pytest.raises(BadConfiguration, match="OIDC_ISSUER"):
        ServiceConfig.from_env(environment)
