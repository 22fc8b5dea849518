"""The load: many traders at once, until the wanted number of intents was accepted or the time is over."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from fault_client import Client
from fault_stories import Accounts, Trader

LONGEST_BACKLOG = 400
LONGEST_WAIT = 20.0


class Load:
    """Traders in threads, until the wanted number of intents was accepted or the time is over."""

    def __init__(
        self, client: Client, accounts: Accounts, *, wanted: int | None,
        seconds: float | None, traders: int, seed: int, simple: int, backlog: Callable[[], int],
    ) -> None:  # fmt: skip
        self.wanted, self.seconds, self.began = wanted, seconds, time.monotonic()
        self._simple, self._backlog = simple, backlog
        self.go_on = threading.Event()
        self.go_on.set()
        self.errors: list[BaseException] = []
        self._count = itertools.count(1)
        self.accepted = 0
        self.traders = [self._trader(client, accounts, seed * 1000 + n) for n in range(traders)]
        self.threads = [threading.Thread(target=self._run, args=(trader,), daemon=True) for trader in self.traders]

    def _trader(self, client: Client, accounts: Accounts, seed: int) -> Trader:
        return Trader(
            client.twin(random.Random(seed)), accounts, random.Random(seed + 500), self._created, self._simple
        )

    def start(self) -> None:
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()
        threading.Thread(target=self._watch, daemon=True, name="backlog").start()

    def _watch(self) -> None:
        """Lets traders wait while too much waits for executors: else a HALT would deny most of what there is."""
        while self.running():
            with suppress(Exception):  # the database is killed and frozen like everything else
                if self._backlog() > LONGEST_BACKLOG:
                    self.go_on.clear()
                else:
                    self.go_on.set()
            time.sleep(1.0)
        self.go_on.set()

    def _run(self, trader: Trader) -> None:
        try:
            trader.run(self._more)
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            self.errors.append(error)

    def _more(self) -> bool:
        self.go_on.wait(LONGEST_WAIT)
        return not self.errors and self.progress < 1

    def _created(self) -> None:
        self.accepted = max(self.accepted, next(self._count))

    @property
    def progress(self) -> float:
        """From 0 to 1: of the intents, or of the time."""
        if self.wanted is not None:
            return min(1.0, self.accepted / self.wanted)
        return min(1.0, (time.monotonic() - self.began) / (self.seconds or 1.0))

    @property
    def repeated(self) -> int:
        return sum(trader.client.repeated for trader in self.traders)

    def running(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)
