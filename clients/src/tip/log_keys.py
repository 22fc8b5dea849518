"""`tip log-keys`, and the public keys that statements are checked with, from whoever is trusted with them."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import click
import requests

from tip_local.datastore import write_private
from tip_local.errors import Fault
from tip_local.home import Home, random_key
from tip_local.settings import Settings

PATIENCE_S = 10


@click.group()
def command() -> None:
    """The keys that sign the heads of accounts' logs."""


@command.command()
def rotate() -> None:
    """Sign with a new key from the next start on; what was signed before stays valid, and the old key published."""
    home = Home(Settings.from_env().home)
    home.create()
    write_private(home.path / "secrets.json", json.dumps(home.secrets() | {"log_signing_key": random_key()}, indent=2))
    click.echo("tip: intents-signer signs with a new key when the platform is started again")


def given(public_key: bytes | None, published: str | None) -> dict[str, bytes]:
    """By their ids: one key, or all that are published in a file or at a URL."""
    if (public_key is None) == (published is None):
        raise click.UsageError(
            "a statement is checked with either --keys, the address of GET /.well-known/log-jwks.json or a file with "
            "its answer, or --public-key"
        )
    if public_key is not None:
        return {hashlib.sha256(public_key).hexdigest()[:16]: public_key}
    return _read(str(published))


def _read(published: str) -> dict[str, bytes]:
    try:
        return {key["kid"]: _raw(key["x"]) for key in _document(published)["keys"] if key.get("crv") == "Ed25519"}
    except OSError as error:
        raise Fault(f"no keys can be read from {published}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Fault(f"{published} holds no keys as GET /.well-known/log-jwks.json answers them") from None


def _document(published: str) -> Any:
    if published.startswith(("https://", "http://")):
        answer = requests.get(published, timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.json()
    return json.loads(Path(published).read_text("utf-8"))


def _raw(x: str) -> bytes:
    return base64.urlsafe_b64decode(x + "=" * (-len(x) % 4))
