"""What is done by hand and not over HTTP, with the environment of identity's web process.

python -m identity.admin create-service-account --name operator --scope organization:write --scope organization:read
python -m identity.admin put-member --organization $ID --subject 'auth0|17' --role admin
python -m identity.admin remove-member --organization $ID --subject 'auth0|17'
python -m identity.admin put-client --id desk --name 'The desk' --redirect-uri https://desk.example.com/callback
python -m identity.admin reset-login --subject alice@acme.com [--totp]

So the first operator and an organization's first admin come to be: over HTTP nobody can make a service account stronger
than their own, and only an admin of an organization changes its members. `tip signing-keys` is for the signing keys,
`tip init` for the very first organization.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chassis import tenancy
from chassis.config import stop_on_bad_configuration
from chassis.principals import Role
from chassis.tokens import is_name
from identity import model, model_login, usecases
from identity.app import dependencies
from identity.config import Config
from identity.usecases import grants, passwords


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _parser().parse_args(arguments)
    with stop_on_bad_configuration("identity-admin"):
        deps = dependencies(Config.from_env())
    try:
        with tenancy.serving_all():
            answer = _done(deps, chosen)
    except (model.NotFound, model.UserDeleted, model_login.LoginElsewhere, model_login.BadClient) as refusal:
        sys.exit(f"identity-admin: {type(refusal).__doc__}")
    sys.stdout.write(json.dumps(answer) + "\n")
    deps.engine.dispose()


def _done(deps: usecases.Deps, chosen: argparse.Namespace) -> dict[str, Any]:
    if chosen.command == "put-member":
        member, _ = usecases.change_member(deps, None, chosen.organization, chosen.subject, chosen.role)
        return {"user_id": str(member.user_id), "role": member.role}
    if chosen.command == "remove-member":
        usecases.remove_member(deps, None, chosen.organization, chosen.subject)
        return {"removed": chosen.subject}
    if chosen.command == "put-client":
        grants.put_client(deps, model_login.Client(chosen.id, chosen.name, tuple(chosen.redirect_uri)))
        return {"client_id": chosen.id}
    if chosen.command == "reset-login":
        return {"one_time_code": passwords.reset_login(deps, chosen.subject, totp=chosen.totp)}
    account, secret = usecases.create_service_account(deps, chosen.name, chosen.scope)
    return {"client_id": account.client_id, "client_secret": secret}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m identity.admin", description="Operate identity by hand.")
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create-service-account", help="prints the secret, this once")
    create.add_argument("--name", required=True)
    create.add_argument("--scope", action="append", required=True, choices=model.SCOPES)
    put = commands.add_parser("put-member", help="also an organization's first admin")
    remove = commands.add_parser("remove-member", help="also the last admin")
    for member in (put, remove):
        member.add_argument("--organization", required=True, type=UUID)
        member.add_argument("--subject", required=True, type=_subject, help="the provider's id of the user")
    put.add_argument("--role", required=True, choices=list(Role))
    client = commands.add_parser("put-client", help="an application that people may let act for them")
    client.add_argument("--id", required=True, type=_subject)
    client.add_argument("--name", required=True)
    client.add_argument("--redirect-uri", action="append", required=True)
    reset = commands.add_parser("reset-login", help="prints a one-time code to set a new password with, this once")
    reset.add_argument("--subject", required=True, type=_subject, help="the e-mail address")
    reset.add_argument("--totp", action="store_true", help="take the second factor away as well")
    return parser


def _subject(text: str) -> str:
    if not is_name(text):
        raise argparse.ArgumentTypeError("not a provider's id of a user")
    return text


if __name__ == "__main__":
    main()
