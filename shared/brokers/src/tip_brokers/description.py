"""A broker as its plug-in describes it. Cheap to load: what speaks to the broker is imported by `connect`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tip_brokers.capabilities import Capabilities
from tip_brokers.protocol import Broker

ENVIRONMENTS = ("paper", "live")
VISIBLE = r"[!-~]+"


class CredentialField(NamedTuple):
    """A part of what opens an account at the broker. It is kept in the vault whether or not it is a secret."""

    name: str
    title: str
    longest: int = 255
    pattern: str = VISIBLE
    required: bool = True
    secret: bool = True
    """Whether it is hidden while it is typed."""


class Setting(NamedTuple):
    """An environment variable of the executor and the reconciler."""

    variable: str
    meaning: str
    default: str = ""
    environment: str = ""
    """The only one that it is for. Without it a check at a sandbox takes no value of it: live accounts may use it."""


@dataclass(frozen=True)
class BrokerSettings:
    """What an adapter is connected with. `values` holds the variables of the broker's own settings."""

    values: Mapping[str, str] = field(default_factory=dict)
    connect_seconds: float = 1.0
    read_seconds: float = 3.0

    def of(self, setting: Setting) -> str:
        return self.values.get(setting.variable, "").strip() or setting.default


class Connector(Protocol):
    """A way to one broker, from which accounts there are reached with their secrets."""

    def account(self, secret: Mapping[str, str]) -> Broker: ...


Connect = Callable[[str, BrokerSettings], Connector]
"""From an environment, paper or live, to a way there."""


def _as_shown(order_id: str, _symbol: str) -> str:
    return order_id


@dataclass(frozen=True)
class BrokerDescription:
    name: str
    title: str
    credential: Sequence[CredentialField]
    """A credential is tested by `Broker.account_id`, which logs in with it."""
    capabilities: Capabilities
    connect: Connect
    environments: Sequence[str] = ENVIRONMENTS
    settings: Sequence[Setting] = ()
    needs_credential: bool = True
    """False only where the platform makes one itself for an account that has none."""
    is_simulated: bool = False
    """Whether nothing is traded there even in the live environment."""
    complete_order_id: Callable[[str, str], str] = _as_shown
    """The adapter's id of an order, from the id that the broker shows to people, and the order's symbol."""
