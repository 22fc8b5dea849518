"""Scenarios by name, and how they are run: each on its own account of one platform, with a proxy before the broker."""

import shutil
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from fault_proxy import BrokerProxy
from fault_stack import Stack
from fault_start import stack
from fault_trial import StreamHolds, Trial

EXECUTORS = 2
SETTINGS = {"BROKER_READ_SECONDS": "1.5", "BROKER_CONNECT_SECONDS": "0.5", "EXECUTOR_LEASE_SECONDS": "6.5"}
"""Over the quick ones: many scenarios at the same time must not time out only because they are many."""


@dataclass(frozen=True)
class Scenario:
    """`alone`: it kills or pauses processes, or changes the broker for everybody; the others run at the same time."""

    name: str
    run: Callable[[Trial], None]
    alone: bool

    @property
    def says(self) -> str:
        return (self.run.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True)
class Outcome:
    scenario: Scenario
    error: BaseException | None
    notes: list[str]

    @property
    def good(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        lines = [f"{'green' if self.good else 'RED'}  {self.scenario.name}: {self.scenario.says}"]
        lines += [f"       {note}" for note in self.notes]
        if self.error is not None:
            lines.append(f"       {type(self.error).__name__}: {self.error}")
            if not isinstance(self.error, AssertionError):
                lines += traceback.format_exception(self.error)
        return "\n".join(lines)


SCENARIOS: dict[str, Scenario] = {}


def scenario(*, alone: bool = False) -> Callable[[Callable[[Trial], None]], Callable[[Trial], None]]:
    """Enter the function under its own name."""

    def enter(run: Callable[[Trial], None]) -> Callable[[Trial], None]:
        SCENARIOS[run.__name__] = Scenario(run.__name__, run, alone)
        return run

    return enter


@dataclass
class Stage:
    """A platform on which scenarios are played, each on the next account. To be used by one thread."""

    on: Stack
    proxy: BrokerProxy
    streams: StreamHolds
    chosen: Sequence[Scenario]
    all_good: bool = True
    _coming: dict[str, Future[Outcome]] = field(default_factory=dict, init=False)

    def outcome(self, chosen: Scenario) -> Outcome:
        """Plays it, or waits for it: those that do not need the platform for themselves all start with the first."""
        if not chosen.alone:
            return self._started()[chosen.name].result()
        wait(self._coming.values())
        outcome = self._play(chosen)
        self.on.revive_well()
        return outcome

    def _started(self) -> dict[str, Future[Outcome]]:
        if not self._coming:
            parallel = [scenario for scenario in self.chosen if not scenario.alone]
            pool = ThreadPoolExecutor(len(parallel))
            self._coming |= {scenario.name: pool.submit(self._play, scenario) for scenario in parallel}
            pool.shutdown(wait=False)
        return self._coming

    def _play(self, chosen: Scenario) -> Outcome:
        account_id = self.on.accounts[self.chosen.index(chosen)]
        trial = Trial(self.on, self.proxy, self.streams, account_id)
        error: BaseException | None = None
        try:
            chosen.run(trial)
        except Exception as raised:  # noqa: BLE001 - reported with the scenario's name
            error, self.all_good = raised, False
        return Outcome(chosen, error, trial.notes)

    def close(self) -> None:
        """Lets what is under way come to its end."""
        wait(self._coming.values())


def in_order(chosen: Iterable[Scenario]) -> list[Scenario]:
    """Those that need the platform for themselves first."""
    return sorted(chosen, key=lambda scenario: not scenario.alone)


@contextmanager
def stage(chosen: Sequence[Scenario]) -> Iterator[Stage]:
    """The platform with quick settings and two executors. Its logs stay behind unless everything was green."""
    with ExitStack() as opened:
        proxies: list[BrokerProxy] = []

        def in_front(port: int) -> int:
            proxies.append(opened.enter_context(BrokerProxy(port)))
            proxies[0].stream_filter = streams
            return proxies[0].port

        streams = StreamHolds()
        on = opened.enter_context(
            stack(
                accounts=len(chosen), executors=EXECUTORS, quick=True, seed=7, in_front_of_broker=in_front, **SETTINGS
            )
        )
        made = Stage(on, proxies[0], streams, chosen)
        opened.callback(made.close)
        yield made
    if made.all_good:
        shutil.rmtree(on.directory, ignore_errors=True)
