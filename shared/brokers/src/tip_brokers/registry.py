"""The brokers that are installed: each is an entry point in the group `tip.brokers`.

    [project.entry-points."tip.brokers"]
    acme = "acme_for_tip:BROKER"              # a BrokerDescription
    family = "family_for_tip:brokers"         # or a function that gives several, named family:one, family:two

A package that is installed beside the platform is a broker there; nothing else has to be changed.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from tip_brokers.description import ENVIRONMENTS, BrokerDescription

GROUP = "tip.brokers"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}(:[a-z0-9][a-z0-9_-]{0,31})?")


class BadPlugin(Exception):
    """A plug-in that cannot be used, and why."""


class UnknownBroker(Exception):
    """No broker of this name is installed."""


@cache
def installed() -> Mapping[str, BrokerDescription]:
    """Every broker by its name, in alphabetical order."""
    return read(entry_points(group=GROUP))


def read(plugins: Iterable[EntryPoint]) -> Mapping[str, BrokerDescription]:
    found: dict[str, BrokerDescription] = {}
    for plugin in plugins:
        for broker in _described_by(plugin):
            if broker.name in found:
                raise BadPlugin(f"{plugin.name}: there are two brokers named {broker.name}")
            found[broker.name] = broker
    return dict(sorted(found.items()))


def find(name: str) -> BrokerDescription:
    try:
        return installed()[name]
    except KeyError:
        raise UnknownBroker(name) from None


def _described_by(plugin: EntryPoint) -> list[BrokerDescription]:
    loaded: BrokerDescription | Callable[[], Iterable[BrokerDescription]] = plugin.load()
    described = [loaded] if isinstance(loaded, BrokerDescription) else list(loaded())
    for broker in described:
        if problem := _problem(plugin.name, broker):
            raise BadPlugin(f"{plugin.name}: {problem}")
    return described


def _problem(plugin: str, broker: BrokerDescription) -> str | None:
    if not _NAME.fullmatch(broker.name) or broker.name.partition(":")[0] != plugin:
        return f"its brokers are named {plugin} or {plugin}:something, not {broker.name!r}"
    if not broker.environments or not set(broker.environments) <= set(ENVIRONMENTS):
        return f"environments of {broker.name} are among {', '.join(ENVIRONMENTS)}"
    names = [field.name for field in broker.credential]
    if len(set(names)) < len(names):
        return f"two credential fields of {broker.name} have one name"
    return None
