"""Who calls: the environment, a profile of the user's, or the demo data of the platform on this machine."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from tip import profile_file
from tip.exits import WRONG_USAGE, Failure
from tip_client import Settings
from tip_local.settings import Settings as LocalSettings

DEMO = {
    "demo": ("api_keys", "paper", "paper"),
    "demo-live": ("api_keys", "live", "live"),
    "demo-admin": ("tokens", "admin", "paper"),
}
"""Profiles that need no file: kind and name of the credential in local.json, and the account."""
_ORGANIZATION = "acme"


DEADLINE_S = 10.0
"""Somebody waits at the terminal: the SDK's own 30 s are for programs."""


def settings_of(profile: str | None) -> Settings:
    found = _settings(profile)
    return replace(found, deadline=min(found.deadline, DEADLINE_S))


def _settings(profile: str | None) -> Settings:
    """The environment counts before the profile; without either it is the demo data, if there is any."""
    chosen, is_addressed = profile or os.environ.get("TIP_PROFILE"), bool(os.environ.get("TIP_URL"))
    if chosen in DEMO and chosen not in profile_file.names() and (profile or not is_addressed):
        return demo_settings(chosen, os.environ.get("TIP_ACCOUNT"))
    found = Settings.from_env(profile)
    has_caller = found.key or found.token or is_addressed
    if chosen or has_caller or profile_file.default() or not has_demo_data():
        return found
    return demo_settings("demo", found.account)


def demo_settings(name: str, account: str | None = None) -> Settings:
    kind, credential, environment = DEMO[name]
    local = _local()
    try:
        organization = local["organizations"][_ORGANIZATION]
        shown = {"key" if kind == "api_keys" else "token": organization[kind][credential]}
        places = {"url": local["base_url"], "events_url": local["events_url"], "stream_target": local["stream_target"]}
        return replace(Settings(**places, **shown), account=account or organization["accounts"][environment])
    except KeyError:
        raise _no_demo_data() from None


def local_file() -> Path:
    return LocalSettings.from_env().home / "local.json"


def local_url() -> str | None:
    """Where the platform of this machine is, if there is one."""
    return _described().get("base_url")


def has_demo_data() -> bool:
    return "organizations" in _described()


def _local() -> dict[str, Any]:
    if not (found := _described()):
        raise _no_demo_data()
    return found


def _described() -> dict[str, Any]:
    try:
        found = json.loads(local_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _no_demo_data() -> Failure:
    return Failure(f"there is no demo data in {local_file().parent}", WRONG_USAGE, hint="`make up` makes it")
