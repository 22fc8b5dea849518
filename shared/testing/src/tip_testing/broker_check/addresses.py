"""Where a check at a sandbox may connect: never to what may be a live environment."""

import ipaddress
import re
from collections.abc import Mapping
from itertools import permutations
from urllib.parse import urlsplit

from tip_brokers import BrokerDescription, BrokerSettings, Setting
from tip_testing.broker_check.errors import CannotCheck

SANDBOX = "paper"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s,;]+", re.IGNORECASE)
_USUAL_PORTS = (None, 80, 443)
Place = tuple[str, int | None]


def sandbox_settings(broker: BrokerDescription, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Never those of a live environment: neither by name nor by an address that two of them share."""
    if SANDBOX not in broker.environments:
        raise CannotCheck(f"{broker.name} has no sandbox: its only environment is {', '.join(broker.environments)}")
    given = BrokerSettings({setting.variable: environment.get(setting.variable, "") for setting in broker.settings})
    for setting in broker.settings:
        if _is_shared(broker, setting) and given.of(setting) != setting.default:
            raise CannotCheck(f"{setting.variable} is for live accounts too: without it, the sandbox's own is used")
    for one, other in permutations(broker.settings, 2):
        if _places(one, given.of(one)) & (_places(other, given.of(other)) | _places(other, other.default)):
            raise CannotCheck(f"{one.variable} and {other.variable} are one address: it may be a live one")
    return given.values


def _is_shared(broker: BrokerDescription, setting: Setting) -> bool:
    return not broker.is_simulated and len(broker.environments) > 1 and not setting.environment


def _places(setting: Setting, value: str) -> set[Place]:
    try:
        return {_place(address) for address in _ADDRESS.findall(value)}
    except ValueError:
        raise CannotCheck(f"{setting.variable} has an address that cannot be read") from None


def _place(address: str) -> Place:
    """Whoever answers at a usual port answers at the others for the same, if only by a redirect."""
    parts = urlsplit(address)
    return _host(parts.hostname or ""), None if parts.port in _USUAL_PORTS else parts.port


def _host(name: str) -> str:
    name = name.lower().rstrip(".")
    try:
        return "localhost" if ipaddress.ip_address(name).is_loopback else name
    except ValueError:
        return name
