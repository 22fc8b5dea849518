"""The secret of a broker credential, from the terminal, a file or a pipe; it is repeated in no message."""

import json
import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import click

from tip.exits import WRONG_USAGE, Failure
from tip.session import Session

if TYPE_CHECKING:
    from tip_client.models.accounts import Broker, SecretPart


def broker_of(session: Session, name: str) -> "Broker":
    """What the broker wants a secret to be made of."""
    found = next((broker for broker in session.client.accounts.brokers() if broker.name == name), None)
    if found is None:
        raise Failure(f"the platform has no broker {name!r} any more", hint="`tip broker list` shows those it has")
    return found


def read_secret(broker: "Broker", file: IO[str] | None) -> dict[str, str]:
    """Part by part at the terminal, or as one JSON object."""
    if file is None and sys.stdin.isatty():
        entered = {part.name: _ask(part) for part in broker.credential}
        return {name: value for name, value in entered.items() if value}
    secret = _parsed(file or sys.stdin)
    if not secret:
        parts = {part.name: "…" for part in broker.credential if part.required}
        hint = f"such as {json.dumps(parts, ensure_ascii=False)}"
        raise Failure("the secret is no JSON object of strings", WRONG_USAGE, hint=hint)
    return dict(secret)


def _ask(part: "SecretPart") -> str:
    default = None if part.required else ""
    return str(click.prompt(part.title, hide_input=part.secret, default=default, show_default=False, err=True)).strip()


def _parsed(file: IO[str]) -> Mapping[str, str] | None:
    try:
        found = json.load(file)
    except (ValueError, RecursionError):
        return None
    is_secret = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
    return found if is_secret else None
