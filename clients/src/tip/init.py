"""`tip init`"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import click

from tip.signing_keys import identity
from tip_local.errors import Fault
from tip_local.home import SIGNING_KEY

OWN = ("DATABASE_URL", SIGNING_KEY)


@click.command()
@click.option("--organization", required=True, help="The name of the organization.")
@click.option("--admin", required=True, metavar="ADDRESS", help="The e-mail address of its admin.")
def command(organization: str, admin: str) -> None:
    """Make the first organization, its admin and an operator's service account.

    Where identity's own environment is set (DATABASE_URL and SIGNING_KEY_ENCRYPTION_KEY), as in its container or pod,
    that is used; else the platform on this machine. Running it again changes nothing that is there; an admin who has
    not set a password yet gets a new one-time code in place of the old one.
    """
    if "@" not in admin or not admin.isprintable() or len(admin) > 254:
        raise Fault("--admin must be an e-mail address")
    with installation() as (start, deps):
        show(start(deps, organization, admin), organization, admin)


def show(started: Any, organization: str, admin: str) -> None:
    made = {True: "made", False: "there already:"}
    click.echo(f"tip: {made[started.organization_made]} organization {organization} ({started.organization_id})")
    click.echo(f"tip: {made[started.admin_made]} admin {admin.strip().lower()}")
    click.echo(f"tip: {made[bool(started.client_secret)]} service account {started.client_id}")
    if started.client_secret:
        click.echo(f"tip: its secret, shown this once: {started.client_secret}")
    if started.one_time_code:
        click.echo(f"tip: one-time code of the admin, for /login/code, valid for a day: {started.one_time_code}")
    else:
        click.echo("tip: the admin has a password; `python -m identity.admin reset-login` replaces a forgotten one")


@contextmanager
def installation() -> Iterator[tuple[Any, Any]]:
    """What starts an installation, and what it works with: as identity's own process, or on this machine."""
    with ExitStack() as stack:
        deps = stack.enter_context(own_environment()) if is_own_environment() else stack.enter_context(identity())[1]
        stack.enter_context(import_module("chassis.tenancy").serving_all())
        with refusals():
            yield import_module("identity.usecases.init").start_installation, deps


def is_own_environment() -> bool:
    return all(os.environ.get(name) for name in OWN)


@contextmanager
def own_environment() -> Iterator[Any]:
    bad_configuration: Any = import_module("chassis.config").BadConfiguration
    try:
        deps = import_module("identity.app").dependencies(import_module("identity.config").Config.from_env())
    except bad_configuration as problem:
        raise Fault(str(problem)) from problem
    yield deps
    deps.engine.dispose()


@contextmanager
def refusals() -> Iterator[None]:
    model, model_login = import_module("identity.model"), import_module("identity.model_login")
    errors = import_module("sqlalchemy.exc")
    try:
        yield
    except (model.UserDeleted, model.LimitReached, model_login.LoginElsewhere) as refusal:
        raise Fault(str(type(refusal).__doc__)) from refusal
    except errors.SQLAlchemyError as problem:
        raise Fault(f"the database refused ({type(problem).__name__}); run `tip migrate` first") from problem
