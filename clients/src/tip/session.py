"""What a command of the API works with: who calls, for which account, and how it prints."""

from collections.abc import Callable
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import click

from tip.exits import WRONG_USAGE, Failure
from tip.output import Output

if TYPE_CHECKING:
    from tip_client import Client, Settings
    from tip_client.models.accounts import Account

P = ParamSpec("P")
T = TypeVar("T")

SHOWN = 5
"""How many accounts a message names."""
_JSON, _PROFILE, _ACCOUNT = "tip.json", "tip.profile", "tip.account"


def _remember(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Before and after the name of the command they mean the same."""

    def remember(ctx: click.Context, _option: click.Parameter, value: Any) -> None:
        if value == "":
            raise click.BadParameter("is empty", ctx, _option)
        if value:
            ctx.meta[key] = value

    return remember


def _option(name: str, key: str, text: str, **more: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    return click.option(name, expose_value=False, callback=_remember(key), help=text, **more)


def json_option(function: Callable[P, T]) -> Callable[P, T]:
    """--json alone, for a command that calls nobody."""
    return _option("--json", _JSON, "Print JSON: docs/cli.md.", is_flag=True)(function)


def with_caller(function: Callable[P, T]) -> Callable[P, T]:
    """--profile and --json, for a command that has an --account of another meaning."""
    return _option("--profile", _PROFILE, "Address and credential.", metavar="NAME")(json_option(function))


def common_options(function: Callable[P, T]) -> Callable[P, T]:
    """--profile, --account and --json."""
    account = _option("--account", _ACCOUNT, "Account: id, prefix or name.", metavar="ID")
    return account(with_caller(function))


def shown_as_json(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(_JSON))


def has_json(command: click.Command) -> bool:
    """Whether the command, or one below it, prints JSON."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return any("--json" in option.opts for option in command.params) or any(map(has_json, below))


class Session:
    """Connects when the first call is made."""

    def __init__(self, ctx: click.Context, account: str | None = None) -> None:
        self._ctx, self._account = ctx, account
        self.out = Output(as_json=shown_as_json(ctx))

    @property
    def profile(self) -> str | None:
        return self._ctx.meta.get(_PROFILE)

    @property
    def named_account(self) -> str | None:
        """What --account says."""
        return self._account or self._ctx.meta.get(_ACCOUNT)

    @cached_property
    def settings(self) -> "Settings":
        from tip.callers import settings_of

        return settings_of(self.profile)

    @cached_property
    def client(self) -> "Client":
        """For calls about the organization."""
        from tip_client import Client

        return self._ctx.with_resource(Client(settings=self.settings))

    @cached_property
    def account_client(self) -> "Client":
        """For calls about one account: the one that is named, the configured one, or the only one."""
        return self.client.for_account(self.account_id)

    @cached_property
    def account_id(self) -> str:
        named = self.named_account
        if named is None and self.settings.account is not None:
            return self.settings.account
        return named if named and _is_uuid(named) else self._found(named).id

    def _found(self, name: str | None) -> "Account":
        seen = list(self.client.accounts.list())
        accounts = [account for account in seen if name is None or _is_named(account, name)]
        if len(accounts) != 1:
            there = ", ".join(f"{account.name!r} {account.id}" for account in seen[:SHOWN])
            raise Failure(_which_account(name, len(accounts)), WRONG_USAGE, hint=f"there are: {there or 'none'}")
        return accounts[0]


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_named(account: "Account", name: str) -> bool:
    return account.name == name or account.id.startswith(name.lower())


def _which_account(name: str | None, count: int) -> str:
    if name is None:
        return f"no account is chosen, and there are {count}: give --account or set TIP_ACCOUNT"
    return f"{count or 'no'} accounts are named {name!r} or have an id that begins so"


def with_session(function: Callable[Concatenate[Session, P], T]) -> Callable[P, T]:
    """The session as first argument, and its options on the command."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(Session(click.get_current_context()), *args, **kwargs)

    return common_options(run)
