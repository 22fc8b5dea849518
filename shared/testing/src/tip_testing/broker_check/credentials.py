"""What opens an account at a broker's sandbox: from a file or the environment, never from the command line."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tip_brokers import BrokerDescription, CredentialField
from tip_testing.broker_check.errors import CannotCheck

PREFIX = "TIP_BROKER_"
HIDDEN = "***"
SHORTEST_LINE = 4


def variable(field: CredentialField) -> str:
    return PREFIX + re.sub(r"\W", "_", field.name).upper()


def read_secret(broker: BrokerDescription, file: Path | None, environment: Mapping[str, str]) -> Mapping[str, str]:
    given = _from_file(file) if file else _from_environment(broker, environment)
    problems = [problem for field in broker.credential if (problem := _problem(field, given))]
    problems += [f"{name} is no part of it" for name in given.keys() - {field.name for field in broker.credential}]
    if problems:
        raise CannotCheck(f"the credential for {broker.name}: {'; '.join(problems)} ({_how(broker)})")
    return given


def _from_environment(broker: BrokerDescription, environment: Mapping[str, str]) -> Mapping[str, str]:
    values = {field.name: environment.get(variable(field), "") for field in broker.credential}
    return {name: value for name, value in values.items() if value}


def _from_file(file: Path) -> Mapping[str, str]:
    """Not one that others may read: whoever reads it trades with it."""
    try:
        if file.stat().st_mode & 0o077:
            raise CannotCheck(f"others may read {file}: chmod 600 {file}")
        given: Any = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CannotCheck(f"{file} cannot be read as JSON ({type(error).__name__})") from None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise CannotCheck(f"{file} must be one JSON object of texts")
    return given


def _problem(field: CredentialField, given: Mapping[str, str]) -> str | None:
    value = given.get(field.name)
    if value is None:
        return f"{field.name} is missing" if field.required else None
    fits = len(value) <= field.longest and re.fullmatch(field.pattern, value)
    return None if fits else f"{field.name} has not the described form"


def _how(broker: BrokerDescription) -> str:
    return f"a JSON file by --credentials, or the variables {', '.join(map(variable, broker.credential))}"


def secrets_in(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(PREFIX)}


def without_secrets(text: str, secret: Mapping[str, str]) -> str:
    """Whatever an adapter says, a report never quotes a part of the credential. Before anything is cut off `text`."""
    forms = {form for value in secret.values() for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def _forms(value: str) -> Iterator[str]:
    """As it is, as code and JSON quote it, in an address, and the lines of it one by one."""
    forms = (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), " ".join(value.split()))
    yield from filter(None, (*forms, value.strip()))
    lines = [line.strip() for line in value.splitlines()]
    yield from (line for line in lines if len(line) >= SHORTEST_LINE)
