"""docs/operations.md names everything an operator can set."""

import dataclasses
import re
from importlib import import_module
from pathlib import Path

import pytest

from tip_brokers import installed

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "operations.md").read_text()
CONFIGURATIONS = (
    "chassis.config.ServiceConfig",
    "identity.config.Config",
    "accounts.config.Config",
    "controls.config.Config",
    "intents.config.Config",
    "intents.config.SignerConfig",
    "intents.execution.config.ExecutionConfig",
    "stream_gateway.config.Config",
    "console.config.Config",
)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_variable_of_every_process_is_on_the_page(name: str) -> None:
    module, _, configuration = name.rpartition(".")
    fields = dataclasses.fields(getattr(import_module(module), configuration))
    variables = [field.metadata["variable"] for field in fields if "variable" in field.metadata]

    assert variables
    assert [variable for variable in variables if f"`{variable}`" not in PAGE] == []


def test_every_variable_of_the_installed_brokers_is_on_the_page() -> None:
    variables = [setting.variable for broker in installed().values() for setting in broker.settings]

    assert variables
    assert [variable for variable in variables if f"`{variable}`" not in PAGE] == []


def test_every_variable_of_the_compose_file_is_on_the_page() -> None:
    used = set(re.findall(r"\$\{(\w+)", (REPOSITORY / "docker-compose.yml").read_text()))

    assert used
    assert {name for name in used if f"`{name}`" not in PAGE} == set()
