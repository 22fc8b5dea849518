"""The list of services is that of what is installed and of what the import contracts name; and who gives way."""

import tomllib
from pathlib import Path
from typing import Any

from chassis import migrations
from chassis.services import SERVICES, WEB_SERVICES
from tip_local import home
from tip_local.process_table import PROCESSES

ROOT = Path(__file__).resolve().parents[3]


def contract(name: str) -> Any:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [found] = [contract for contract in linter["contracts"] if contract["name"] == name]
    return found


def test_every_service_is_installed_and_nothing_else_is_one() -> None:
    assert migrations.services() == sorted(SERVICES)


def test_the_import_contracts_name_every_service() -> None:
    assert set(SERVICES) <= set(contract("Services never import each other")["modules"])
    assert set(SERVICES) <= set(contract("The chassis knows no service")["forbidden_modules"])


def test_every_web_process_has_a_role_that_sees_rows_by_organization() -> None:
    assert migrations.web_names() == [migrations.web_name(service) for service in WEB_SERVICES]
    assert migrations.web_name("stream_gateway") == "stream_gateway"


def test_whoever_connects_to_the_database_has_a_password_at_home() -> None:
    assert {*SERVICES, *migrations.web_names()} < set(home.PASSWORDS)


def test_what_answers_callers_and_what_writes_to_their_logs_gives_way_to_nobody() -> None:
    yielding = {spec.name for spec in PROCESSES if spec.yields}

    assert {"intents-executor", "intents-executor-2", "intents-reconciler", "paper-broker"} <= yielding
    assert not {"web", "web-2", "stream-gateway", "intents-workers"} & yielding
