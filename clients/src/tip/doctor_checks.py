"""What `tip doctor` checks from anywhere: configuration, platform, clock, versions, credential, account."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, TypeVar

from tip.exits import Failure
from tip.moments import age
from tip.plain import short
from tip.session import Session
from tip_local.errors import Fault

if TYPE_CHECKING:
    from tip_client.models.accounts import Account
    from tip_client.models.identity import Caller
    from tip_client.models.platform import PlatformInfo

T = TypeVar("T")

CLOCK_TOLERANCE_S = 2.0


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    state: Literal["ok", "warning", "failed"]
    text: str
    advice: str | None = None


def attempt(name: str, call: Callable[[], T]) -> T | Check:
    """What the call returns, or a check that says how it failed and what to do."""
    from tip.sdk_failures import failure_of
    from tip_client import TipError

    try:
        return call()
    except TipError as error:
        failure = failure_of(error)
    except Failure as raised:
        failure = raised
    except Fault as fault:
        failure = Failure(str(fault))
    return Check(name, "failed", f"{name}: {failure.message}", failure.hint)


def connection_checks(session: Session) -> Iterator[Check]:
    """Without a platform that answers, the rest would only say so again."""
    info = attempt("platform", lambda: session.client.platform())  # noqa: PLW0108 - a client may not come about
    if isinstance(info, Check):
        yield info
        return
    yield platform_check(info)
    yield clock_check(info)
    yield versions_check(info, version("tip-cli"), version("tip-client"))
    yield attempt("credential", lambda: credential_check(session.client.me.read()))
    yield attempt("account", lambda: account_check(session.client.accounts.read(session.account_id)))


def configuration(session: Session) -> Check:
    settings = session.settings
    token = "login" if callable(settings.token) else "token"
    credential = "API key" if settings.key else token if settings.token else None
    text = f"calls {settings.url} with {credential or 'no credential'}"
    if credential is None:
        return Check(
            "configuration",
            "failed",
            text,
            "sign in: tip login; or set TIP_KEY, or add a profile: tip profiles add NAME",
        )
    return Check("configuration", "ok", text)


def platform_check(info: "PlatformInfo") -> Check:
    return Check("platform", "ok", f"platform {info.version} answers in {age(info.answered_in)}")


def clock_check(info: "PlatformInfo") -> Check:
    if info.clock_offset is None:
        return Check("clock", "warning", "the platform shows no time", "compare the clocks by hand")
    if abs(info.clock_offset) <= CLOCK_TOLERANCE_S:
        return Check(
            "clock", "ok", "clock within 1 s" if not info.clock_offset else f"clock within {CLOCK_TOLERANCE_S:g} s"
        )
    where = "behind" if info.clock_offset > 0 else "ahead of"
    text = f"this clock is {age(abs(info.clock_offset))} {where} the platform's"
    return Check("clock", "failed", text, "synchronise both by NTP")


def versions_check(info: "PlatformInfo", tip: str, sdk: str) -> Check:
    """`tip` is released with the platform; the SDK has versions of its own, and is only named."""
    text = f"tip {tip}, SDK {sdk}, platform {info.version}"
    if tip.split(".")[:2] == info.version.split(".")[:2]:
        return Check("versions", "ok", text)
    return Check("versions", "warning", text, "install the tip of the platform's version")


def credential_check(caller: "Caller") -> Check:
    about = ", ".join(str(part) for part in (caller.environment, caller.role) if part)
    may = " ".join((*caller.permissions, *caller.scopes)) or "what its role may"
    text = f"{caller.principal_type.replace('_', ' ')} {short(caller.id)}{f', {about}' if about else ''}, may {may}"
    return Check("credential", "ok", text)


def account_check(account: "Account") -> Check:
    text = f"account {short(account.id)} {account.name!r}, {account.environment} at {account.broker}"
    if account.disabled or account.closing:
        why = account.disabled_reason or ("it is being deleted" if account.closing else "no reason was given")
        return Check(
            "account",
            "failed",
            f"{text}, is disabled: {why}",
            "an admin enables it: POST /v1/accounts/{account_id}/enable",
        )
    return Check("account", "ok", text)
