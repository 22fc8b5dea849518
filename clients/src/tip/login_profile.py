"""The profile of a login: its addresses in the file of profiles, its tokens in a file of their own."""

import os
import time
from typing import Any

from tip import profile_file
from tip.callers import local_url
from tip.exits import REFUSED, WRONG_USAGE, Failure
from tip_client import Client, Forbidden, Settings, StoredLogin, Unauthenticated
from tip_client.oauth import Provider, Tokens
from tip_client.settings import LOCAL_URL
from tip_client.stored_login import login_file, new_login

NAME = "login"
"""Of the profile, where nobody names one and the default one is no login."""
_KEPT = ("events_url", "stream_target", "ca", "account")


def name_of(profile: str | None) -> str:
    default = profile_file.default()
    return profile or os.environ.get("TIP_PROFILE") or (default if default and is_login(default) else NAME)


def is_login(name: str) -> bool:
    return "login" in profile_file.profiles().get(name, {})


def stored(name: str) -> StoredLogin:
    values = profile_file.profiles().get(name, {})
    return StoredLogin(login_file(profile_file.path(), values.get("login", name)), ca=values.get("ca"))


def addresses(name: str, url: str | None, ca: str | None) -> dict[str, str]:
    """Those of the profile before, unless another address is named: what belongs to the old one stays behind."""
    former = profile_file.profiles().get(name, {})
    if former and not is_login(name) and ("key" in former or "token" in former):
        raise Failure(f"profile {name!r} has a credential of its own", WRONG_USAGE, hint="--profile NAME makes another")
    named = url or os.environ.get("TIP_URL")
    chosen = named or former.get("url") or local_url() or LOCAL_URL
    kept = {key: former[key] for key in _KEPT if key in former and chosen == former.get("url")}
    given = ca or os.environ.get("TIP_CA")
    return {"url": chosen, **kept, **({"ca": given} if given else {})}


def checked(values: dict[str, str], tokens: Tokens) -> str:
    """The user whom the platform takes the token for. Somebody who is no member yet may accept an invitation."""
    settings = Settings(url=values["url"], ca=values.get("ca"), token=tokens.access_token)
    with Client(settings=settings) as client:
        try:
            return client.me.read().id
        except Forbidden as refusal:
            return f"({refusal.code})"
        except Unauthenticated as refusal:
            hint = "the installation must know this provider, its client and the user: docs/login.md"
            raise Failure(f"the platform refuses this login: {refusal.detail}", REFUSED, refusal.code, hint) from None


def keep(name: str, values: dict[str, Any], client_id: str, provider: Provider, tokens: Tokens) -> None:
    """The tokens first: a profile never names a login that is not there."""
    Settings(**values)
    file = login_file(profile_file.path(), name)
    StoredLogin(file).store(new_login(client_id, provider, tokens, time.time()))
    profile_file.add(name, {**values, "login": name})


def forget(name: str) -> None:
    """The addresses stay, so that the next login goes to the same place."""
    stored(name).forget()
    values = profile_file.profiles().get(name, {})
    profile_file.add(name, {key: value for key, value in values.items() if key != "login"})
