"""The broker under check, as the kit needs it: at its simulator, or at its sandbox."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tip_brokers import Broker, BrokerDescription, BrokerError, BrokerSettings, Capabilities, CredentialRefused
from tip_brokers.simulator import NoSimulator, Simulator, find_simulator
from tip_testing.broker_check.addresses import SANDBOX, sandbox_settings
from tip_testing.broker_check.credentials import secrets_in, without_secrets
from tip_testing.broker_check.errors import BrokerUnreachable, CannotCheck
from tip_testing.broker_check.paced import Paced
from tip_testing.broker_conformance.orders import Scale

_SAME = ("resting", "filling", "halving", "refusing", "silent", "doubling", "late", "at", "full_pages", "went_direct",
         "move")  # fmt: skip
_ZERO = Decimal(0)
SANDBOX_SECONDS = {"connect_seconds": 5.0, "read_seconds": 10.0}


@dataclass(frozen=True)
class CheckedMarket:
    """A `tip_testing.broker_conformance.Market`."""

    can: Capabilities
    broker: Any
    secret: Mapping[str, str]
    resting: str
    filling: str
    scale: Scale = field(default_factory=Scale)
    stranger: Broker | None = None
    halving: str | None = None
    refusing: str | None = None
    silent: str | None = None
    doubling: str | None = None
    late: str | None = None
    at: Callable[[str], Broker] | None = None
    full_pages: Mapping[str, Callable[[int], bytes]] = field(default_factory=dict)
    went_direct: Callable[[str], bool] | None = None
    move: Callable[[Decimal], str] | None = None


@dataclass(frozen=True)
class SandboxTrade:
    """What is traded at a sandbox."""

    symbol: str
    quantity: Decimal = Decimal(1)
    price: Decimal | None = None
    """At which a buy order rests; half of the latest price if it is None."""


@contextmanager
def at_simulator(broker: BrokerDescription) -> Iterator[CheckedMarket]:
    with _started(broker) as simulator:
        connection = _connection(broker, simulator)
        market = _simulated(broker, simulator, connection)
        _reach(market.broker, market.secret)
        yield market


@contextmanager
def _started(broker: BrokerDescription) -> Iterator[Simulator]:
    try:
        context: AbstractContextManager[Simulator] = find_simulator(broker.name)(broker)
        simulator = context.__enter__()
    except NoSimulator as problem:
        raise CannotCheck(f"{broker.name} has no simulator here: {problem}") from None
    except Exception as problem:
        raise BrokerUnreachable(
            f"the simulator of {broker.name} did not start: {_line(problem, secrets_in(os.environ))}"
        ) from problem
    try:
        yield simulator
    finally:
        context.__exit__(None, None, None)


def _connection(broker: BrokerDescription, simulator: Simulator) -> Any:
    """In the broker's only environment if it has one alone: offline nothing of it can be reached."""
    environment = SANDBOX if SANDBOX in broker.environments else broker.environments[0]
    settings = BrokerSettings(simulator.settings, connect_seconds=1.0, read_seconds=simulator.read_seconds)
    return broker.connect(environment, settings)


def _simulated(broker: BrokerDescription, simulator: Simulator, connection: Any) -> CheckedMarket:
    unknown = simulator.unknown_secret
    return CheckedMarket(
        can=broker.capabilities,
        broker=connection.account(simulator.secret),
        secret=simulator.secret,
        stranger=connection.account(unknown) if unknown else None,
        **{name: getattr(simulator, name) for name in _SAME},
    )


@contextmanager
def at_sandbox(
    broker: BrokerDescription, secret: Mapping[str, str], trade: SandboxTrade, environment: Mapping[str, str]
) -> Iterator[CheckedMarket]:
    settings = sandbox_settings(broker, environment)
    account = broker.connect(SANDBOX, BrokerSettings(settings, **SANDBOX_SECONDS)).account(secret)
    paced = Paced(account, broker.capabilities.calls_per_minute)
    _reach(paced, secret)
    scale = _scale(broker.capabilities, paced, trade)
    try:
        yield CheckedMarket(broker.capabilities, paced, secret, trade.symbol, trade.symbol, scale)
    finally:
        _clear(paced, secret)


def _clear(broker: Paced, secret: Mapping[str, str]) -> None:
    """Whatever happens here, what was found out before is reported. A second Ctrl-C does not end it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        left = broker.cancel_all_sent()
        said = f"orders that are left open at the sandbox: {', '.join(left)}" if left else ""
    except Exception as problem:  # noqa: BLE001 - an adapter may raise anything
        sent = ", ".join(sorted(broker.sent))
        said = f"what is open could not be listed ({type(problem).__name__}); of these some may be: {sent}"
    if said:
        sys.stderr.write(f"tip: {without_secrets(said, secret)}\n")


def _reach(broker: Any, secret: Mapping[str, str]) -> None:
    try:
        broker.account_id()
    except CredentialRefused:
        raise CannotCheck("the broker refuses this credential") from None
    except BrokerError as problem:
        raise BrokerUnreachable(f"the broker cannot be reached: {_line(problem, secret)}") from None


def _scale(can: Capabilities, broker: Any, trade: SandboxTrade) -> Scale:
    """What is far above the market is known from its price alone: --price says only what is below."""
    price = _latest_price(can, broker, trade.symbol)
    if price is None and trade.price is None:
        raise CannotCheck(f"there is no price of {trade.symbol}: give one far below the market by --price")
    if price and trade.price and trade.price >= price:
        raise CannotCheck(f"--price is not below the market, which is at {price}: it would buy")
    half = _rounded(price / 2) if price else None
    return Scale(trade.quantity, trade.price or half or _ZERO, 4 * half if half else None)


def _latest_price(can: Capabilities, broker: Any, symbol: str) -> Decimal | None:
    quotes = broker.quotes([symbol]) if can.quotes else []
    return next((quote.bid or quote.last or quote.ask for quote in quotes), None)


def _rounded(price: Decimal) -> Decimal:
    return Decimal(f"{price:.1e}")  # two digits are a multiple of every broker's step


def _line(problem: BaseException, secret: Mapping[str, str]) -> str:
    return (without_secrets(str(problem), secret).strip() or type(problem).__name__).splitlines()[0]
