"""What is done by hand and not over HTTP, with the service's own environment.

python -m identity.admin rotate-signing-keys
python -m identity.admin reseal-signing-keys
python -m identity.admin create-service-account --name operator --scope organization:write --scope organization:read
python -m identity.admin put-member --organization $ID --subject 'auth0|17' --role admin
python -m identity.admin remove-member --organization $ID --subject 'auth0|17'

The last three are how the first operator and an organization's first admin come to be: over HTTP nobody can make a
service account stronger than their own, and only an admin of an organization changes its members.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chassis.config import stop_on_bad_configuration
from chassis.principals import Role
from chassis.tokens import is_name
from identity import model, usecases
from identity.app import dependencies
from identity.config import Config


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _parser().parse_args(arguments)
    with stop_on_bad_configuration("identity-admin"):
        deps = dependencies(Config.from_env())
    try:
        answer = _done(deps, chosen)
    except (model.NotFound, model.UserDeleted) as refusal:
        sys.exit(f"identity-admin: {type(refusal).__doc__}")
    sys.stdout.write(json.dumps(answer) + "\n")
    deps.engine.dispose()
    if answer.get("unopened"):
        sys.exit("identity-admin: these are under a key not given here: add it to EARLIER_SIGNING_KEY_ENCRYPTION_KEYS")


def _done(deps: usecases.Deps, chosen: argparse.Namespace) -> dict[str, Any]:
    if chosen.command == "rotate-signing-keys":
        return {"kid": usecases.rotate_signing_keys(deps)}
    if chosen.command == "reseal-signing-keys":
        return dataclasses.asdict(usecases.reseal_signing_keys(deps))
    if chosen.command == "put-member":
        member, _ = usecases.change_member(deps, None, chosen.organization, chosen.subject, chosen.role)
        return {"user_id": str(member.user_id), "role": member.role}
    if chosen.command == "remove-member":
        usecases.remove_member(deps, None, chosen.organization, chosen.subject)
        return {"removed": chosen.subject}
    account, secret = usecases.create_service_account(deps, chosen.name, chosen.scope)
    return {"client_id": account.client_id, "client_secret": secret}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m identity.admin", description="Operate identity by hand.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("rotate-signing-keys", help="a new key for tokens; old tokens stay valid")
    commands.add_parser(
        "reseal-signing-keys", help="under SIGNING_KEY_ENCRYPTION_KEY, whatever earlier key they are under"
    )
    create = commands.add_parser("create-service-account", help="prints the secret, this once")
    create.add_argument("--name", required=True)
    create.add_argument("--scope", action="append", required=True, choices=model.SCOPES)
    put = commands.add_parser("put-member", help="also an organization's first admin")
    remove = commands.add_parser("remove-member", help="also the last admin")
    for member in (put, remove):
        member.add_argument("--organization", required=True, type=UUID)
        member.add_argument("--subject", required=True, type=_subject, help="the provider's id of the user")
    put.add_argument("--role", required=True, choices=list(Role))
    return parser


def _subject(text: str) -> str:
    if not is_name(text):
        raise argparse.ArgumentTypeError("not a provider's id of a user")
    return text


if __name__ == "__main__":
    main()
