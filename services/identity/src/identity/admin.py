"""What is done by hand and not over HTTP, with the service's own environment.

python -m identity.admin rotate-signing-keys
python -m identity.admin reseal-signing-keys
python -m identity.admin create-service-account --name operator --scope organization:write --scope organization:read

The last is how the first operator comes to be: over HTTP nobody can make a service account stronger than their own.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from chassis.config import stop_on_bad_configuration
from identity import model, usecases
from identity.app import dependencies
from identity.config import Config


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _parser().parse_args(arguments)
    with stop_on_bad_configuration("identity-admin"):
        deps = dependencies(Config.from_env())
    answer = _done(deps, chosen)
    sys.stdout.write(json.dumps(answer) + "\n")
    deps.engine.dispose()
    if answer.get("unopened"):
        sys.exit("identity-admin: these are under a key not given here: add it to EARLIER_KEY_ENCRYPTION_KEYS")


def _done(deps: usecases.Deps, chosen: argparse.Namespace) -> dict[str, Any]:
    if chosen.command == "rotate-signing-keys":
        return {"kid": usecases.rotate_signing_keys(deps)}
    if chosen.command == "reseal-signing-keys":
        return dataclasses.asdict(usecases.reseal_signing_keys(deps))
    account, secret = usecases.create_service_account(deps, chosen.name, chosen.scope)
    return {"client_id": account.client_id, "client_secret": secret}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m identity.admin", description="Operate identity by hand.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("rotate-signing-keys", help="a new key for tokens; old tokens stay valid")
    commands.add_parser("reseal-signing-keys", help="under KEY_ENCRYPTION_KEY, whatever earlier key they are under")
    create = commands.add_parser("create-service-account", help="prints the secret, this once")
    create.add_argument("--name", required=True)
    create.add_argument("--scope", action="append", required=True, choices=model.SCOPES)
    return parser


if __name__ == "__main__":
    main()
