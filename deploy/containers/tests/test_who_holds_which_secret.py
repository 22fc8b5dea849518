"""Which container holds which secret: what prepare.py writes into the volume that it mounts, compared with a table."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tip_local.home import Home
from tip_local.settings import Settings
from tip_local.stack import Stack

COMPOSE = yaml.safe_load((Path(__file__).resolve().parents[3] / "docker-compose.yml").read_text())
SIGNING, VAULT, CURSOR = "signing_key_encryption_key", "vault_key_encryption_key", "cursor_key"
# By the names in secrets.json; that of a role is its password of the database. Who is not here holds none of them.
HOLDS = {
    "identity": ["identity_web", CURSOR, SIGNING],
    "identity-relay": ["identity", CURSOR],
    "identity-scheduler": ["identity", CURSOR],
    "accounts": ["accounts_web", CURSOR, VAULT],
    "accounts-relay": ["accounts", CURSOR, VAULT],
    "accounts-consumer": ["accounts", CURSOR],
    "controls": ["controls_web", CURSOR],
    "controls-relay": ["controls", CURSOR],
    "controls-consumer": ["controls", CURSOR],
    "intents": ["intents_web", CURSOR],
    "intents-relay": ["intents", CURSOR],
    "intents-consumer": ["intents", CURSOR],
    "intents-scheduler": ["intents", CURSOR],
    "intents-signer": ["intents_signer", "log_signing_key"],
    "intents-executor": ["intents", CURSOR, VAULT],
    "intents-reconciler": ["intents", CURSOR, VAULT],
    "stream-gateway": ["stream_gateway", CURSOR],
    "console": [CURSOR],
    "paper-broker": ["paper_broker_operator_token"],
}
# The operator's own hand, once, before and beside the platform: these have the volume with all secrets.
OPERATORS = {"prepare", "migrate", "seed"}


@pytest.fixture
def written(scripts: dict[str, Any], tmp_path: Path, kept: dict[str, str]) -> dict[str, dict[str, str]]:
    """What prepare.py puts into each volume, by where it is mounted there."""
    stack = Stack(Settings.from_env(), Home(tmp_path), kept, "postgresql://tip:x@postgres/tip", "redis://redis")
    return {str(folder): files for folder, files in scripts["prepare"].environments(stack).items()}


def mounts(service: str) -> dict[str, str]:
    """The volumes of a container, and where they are mounted."""
    pairs = [tuple(volume.split(":")[:2]) for volume in COMPOSE["services"][service].get("volumes", [])]
    return dict(pairs)


def test_every_container_holds_its_own_secrets_and_no_other(
    written: dict[str, dict[str, str]], kept: dict[str, str]
) -> None:
    made_at = {volume: place for volume, place in mounts("prepare").items() if place in written}
    held = {}
    for service in COMPOSE["services"].keys() - OPERATORS:
        volumes = [made_at[volume] for volume in mounts(service) if volume in made_at]
        text = " ".join(value for place in volumes for value in written[place].values())
        held[service] = sorted(name for name, secret in kept.items() if secret in text)

    assert {service: secrets for service, secrets in held.items() if secrets} == {
        service: sorted(secrets) for service, secrets in HOLDS.items()
    }


def test_the_volume_with_all_secrets_is_the_operators_alone() -> None:
    assert {service for service in COMPOSE["services"] if "platform" in mounts(service)} == OPERATORS


def test_what_prepare_writes_is_mounted_where_it_writes_it(written: dict[str, dict[str, str]], tmp_path: Path) -> None:
    administrators = str(tmp_path / "environment")

    assert written.keys() - {administrators} <= set(mounts("prepare").values())
    assert written[administrators].keys() == {"DATABASE_URL", "REDIS_URL"}


def test_no_secret_stands_in_the_compose_file() -> None:
    secret = ("PASSWORD", "SECRET", "TOKEN", "KEY")
    for name, service in COMPOSE["services"].items():
        given = service.get("environment", {})
        assert not [variable for variable in given if variable.endswith(secret)], name
