"""A successor need not wait out the lease of an executor that is dead.

Each executor holds an advisory lock under a random id in a session that does nothing else, and its claims carry that
id. When it dies the session ends and the lock with it, and any other executor releases its leases. One that is only
suspended keeps its session: its leases run out by the clock.

An executor that lives and has lost its session must know before it sends, because others may have its work already:
it sees at once that its server ended the session, and reads in pg_locks what only the server may know. What it
claimed under the old id it does not send.

While no command is open anywhere there is nothing to release, and executors rest: the same check then only finds what
no wake-up has announced.
"""

import threading
from collections.abc import Callable

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from intents.execution import store
from intents.execution.clock import elapsed
from intents.execution.metrics import LEASES_RELEASED
from intents.execution.store.leases import HolderSession
from intents.store.connections import PreparedConnections

log = logs.get(__name__)

CHECK_SECONDS = 0.5
REST_SECONDS = 5.0  # between two checks while no command is open; how long a lost wake-up costs then
# By the clock of whoever is gone the last send is CONFIRMED_SECONDS after its lock was seen for the last time, by the
# successor's the release is GONE_SECONDS after the lock was first missed. The difference is within the second by which
# the quiet period before a second send is longer than a call.
CONFIRMED_SECONDS = 1.9
GONE_SECONDS = 0.9


class Liveness:
    """Shared by the threads of one executor. `holder` is for the thread that claims, `check` for one other."""

    def __init__(self, engine: Engine, connections: PreparedConnections, clock: Callable[[], float] = elapsed) -> None:
        self._engine, self._connections, self.clock = engine, connections, clock
        self._lock = threading.Lock()
        self._confirmed_at = 0.0
        self._checked_at = 0.0
        self._wake_ups = 0
        self.is_idle = False
        """Whether no command was open at the last check, and nobody was woken since."""
        self._missed_at: dict[int, float] = {}
        self.is_first = True
        """Whether no other executor that lives has a lower id: the first takes what is new, the others what is left."""
        self.session: HolderSession | None = None

    def holder(self) -> int:
        """The id under which to claim; a new one after the session was lost. Raises when the database is away."""
        if self.session and self.clock() - self._checked_at > 2 * CHECK_SECONDS:
            self.check()  # after a rest: what is claimed now is sent only under a lock that was confirmed
        with self._lock:
            if self.session and self.session.is_open():
                return self.session.holder
        self._drop()
        read_at = self.clock()
        session = HolderSession(self._engine)
        with self._lock:
            self.session, self._confirmed_at, self._checked_at = session, read_at, read_at
        return session.holder

    def is_current(self, holder: int | None) -> bool:
        """Whether what was claimed under this id is still certain to be ours. To be checked right before a send."""
        if holder is None:
            return True
        with self._lock:
            return (
                self.session is not None
                and self.session.holder == holder
                and self.clock() - self._confirmed_at < CONFIRMED_SECONDS
                and self.session.is_open()
            )

    def run(self, stop: threading.Event, beat: Callable[[], object], released: Callable[[], None]) -> None:
        """Check until `stop` is set. `beat` is called at every turn, `released` when there may be something to claim:
        leases were released, or a command is open after a rest."""
        while not stop.wait(CHECK_SECONDS):
            beat()
            was_idle = self.is_idle
            if was_idle and self.clock() - self._checked_at < REST_SECONDS:
                continue
            try:
                if self.check() or (was_idle and not self.is_idle):
                    released()
            except SQLAlchemyError as error:
                log.warning("liveness_check_failed", error=type(error).__name__)
            except Exception as error:
                log.error("liveness_check_failed", exc_info=error)
        self.close()

    def attend(self) -> None:
        """Somebody was woken: rest no more until a check that begins after this finds nothing open."""
        with self._lock:
            self._wake_ups, self.is_idle = self._wake_ups + 1, False

    def check(self) -> int:
        """Confirm that the lock is held, and release the leases of those whose lock is gone; how many."""
        read_at, session, wake_ups = self.clock(), self.session, self._wake_ups
        alive, missed, any_open = store.holders(self._connections.autocommit())
        with self._lock:
            self._checked_at, self.is_idle = read_at, not (any_open or missed or self._wake_ups != wake_ups)
        if session:
            self._confirm(session, session.holder in alive, read_at)
            self.is_first = session.holder <= min(alive, default=session.holder)
        self._missed_at = {holder: self._missed_at.get(holder, self.clock()) for holder in missed}
        gone = [holder for holder, since in self._missed_at.items() if self.clock() - since >= GONE_SECONDS]
        if not gone:
            return 0
        released = store.release(self._connections.autocommit(), gone)
        LEASES_RELEASED.inc(released)
        log.info("leases_released", holders=gone, count=released)
        return released

    def close(self) -> None:
        self._drop()

    def _confirm(self, session: HolderSession, alive: bool, read_at: float) -> None:
        with self._lock:
            if self.session is not session:
                return  # replaced while the database was queried
            if alive:
                self._confirmed_at = read_at
                return
        log.warning("lease_session_lost", holder=session.holder)
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            if self.session:
                self.session.close()
                self.session = None
