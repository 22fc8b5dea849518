"""A circuit breaker for each way to a broker: when it is down, nobody waits for time-outs to find that out again.

Whose failure it is decides who waits. That there is no connection concerns everybody: five such failures in a row open
the circuit that all share. Whatever goes wrong once a request was written may be the request's own doing, so it opens
the circuit of its organization, and the shared one only when several organizations fail at the same time and they are
most of those that have tried recently.

Each pause is a quarter of the outage so far: however long the broker was away, the way is open again before another
quarter of that time has passed, and a long outage costs few tries. While the shared circuit is open organizations try
by turns: each has one try at a time, and a slow one of one organization does not keep the next from its own.

Commands that have to wait are in a queue (`wait_queue`), and `tries` says how many of them may be claimed.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from intents.execution.model.tries import ALL, Tries

FAILURES = 5  # in a row, before a circuit opens
PAUSE_PART = 0.25
SHORTEST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 15.0
LONGEST_TRY_SECONDS = 15.0  # after which the result of a try through an open circuit is no longer awaited
TURN_SECONDS = 0.5  # from one organization's try to another's, if the first has not ended
RECENT_SECONDS = 30.0
FORGET_SECONDS = 600.0
TRIES = 2  # of what waits for the circuit that all share, in one claim

CLOSED, HALF_OPEN, OPEN = 0, 1, 2
_WORDS = ("closed", "half_open", "open")


@dataclass(slots=True)
class Circuit:
    """Failures in a row, and until when nobody should try again once there are too many."""

    failures: int = 0
    failing_from: float = 0.0
    failed_at: float = 0.0
    until: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES

    def fail(self, now: float) -> None:
        self.failures += 1
        if self.failures == 1:
            self.failing_from = now
        self.failed_at, self.until = now, now + self.pause(now)

    def pause(self, now: float) -> float:
        return min(LONGEST_PAUSE_SECONDS, max(SHORTEST_PAUSE_SECONDS, PAUSE_PART * (now - self.failing_from)))

    def clear(self) -> None:
        self.failures = 0

    def left(self, now: float) -> float:
        return self.until - now if self.is_open else 0.0


@dataclass(slots=True)
class Organization(Circuit):
    """How one organization fares at the broker."""

    seen_at: float = 0.0
    trying_until: float = 0.0
    """Until when the result of its try through an open circuit is awaited."""
    failed_commands: set[UUID] = field(default_factory=set)
    """That failed although there was a connection, since the broker last answered."""


class Breaker:
    """Whoever gets 0 from `wait` may pass, and must then report: `succeeded`, `failed` or `abandon_trial`."""

    def __init__(
        self,
        changed: Callable[[int], None] = lambda _state: None,
        organizations_changed: Callable[[int], None] = lambda _open: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changed, self._organizations_changed, self._clock = changed, organizations_changed, clock
        self._lock = threading.Lock()
        self._line = Circuit()
        """Of connections that could not be made."""
        self._several = Circuit()
        """Of calls that failed although there was a connection, whoever made them."""
        self._several_fail = False
        self._organizations: dict[UUID, Organization] = {}
        self._open_organizations: set[UUID] = set()
        self._trying: set[UUID] = set()
        self._tried_at = 0.0
        self._forgot_at = clock()
        self.state = CLOSED
        changed(CLOSED)
        organizations_changed(0)

    @property
    def state_name(self) -> str:
        """Of the circuit that all share."""
        return _WORDS[self.state]

    def wait(self, organization_id: UUID) -> float:
        """Seconds until the organization's next try; 0 means that the caller may pass."""
        with self._lock:
            now = self._clock()
            own = self._of(organization_id, now)
            left = self._left(own, now)
            if left > 0:
                return left
            if self._is_shut or own.is_open:
                own.trying_until = now + LONGEST_TRY_SECONDS
                self._trying.add(organization_id)
                self._tried_at = now
                self._show(organization_id, own)
            return 0.0

    def tries(self) -> Tries:
        """How many of the commands that wait may be claimed: without an open circuit all, otherwise those that would
        pass now."""
        with self._lock:
            if not (self._is_shut or self._open_organizations):
                return ALL
            now = self._clock()
            if not self._is_shut:
                return Tries(of={id_: int(self._may_pass(id_, now)) for id_ in self._open_organizations})
            those_who_wait = [id_ for id_ in self._organizations if not self._may_pass(id_, now)]
            anybody_may = self._left(Organization(), now) <= 0 or len(those_who_wait) < len(self._organizations)
            return Tries(TRIES if anybody_may else 0, 1, dict.fromkeys(those_who_wait, 0))

    def has_failed(self, organization_id: UUID, command_id: UUID) -> bool:
        """Whether the command has, although there was a connection, since the broker last answered its organization."""
        with self._lock:
            own = self._organizations.get(organization_id)
            return own is not None and command_id in own.failed_commands

    def succeeded(self, organization_id: UUID) -> None:
        """The broker answered: whoever failed before may try again, but an organization that fails answers for it."""
        own = self._organizations.get(organization_id)
        if own and not (
            own.failures or own.failed_commands or self._line.failures or self._several.failures or self._trying
        ):
            own.seen_at = self._clock()
            return
        with self._lock:
            own = self._ended(organization_id)
            own.clear()
            own.failed_commands.clear()
            self._line.clear()
            self._several.clear()
            self._several_fail = False
            self._show(organization_id, own)

    def failed(self, organization_id: UUID, *, connected: bool, command_id: UUID | None = None) -> float:
        """Seconds until the organization's next try. `connected`: the request was written, what failed came after."""
        with self._lock:
            now = self._clock()
            own, was_try = self._of(organization_id, now), organization_id in self._trying
            self._ended(organization_id)
            if connected:
                own.fail(now)
                own.failed_commands |= {command_id} if command_id else set()
                if was_try:
                    self._line.clear()  # there is a line, whatever has become of the request
                self._judge_several(now)
            else:
                if now - self._line.failed_at > RECENT_SECONDS and not self._line.is_open:
                    self._line.clear()
                self._line.fail(now)
            self._show(organization_id, own)
            return max(0.0, self._left(own, now))

    def abandon_trial(self, organization_id: UUID) -> None:
        """The caller passed and then tried nothing: the next may pass instead."""
        with self._lock:
            own = self._ended(organization_id)
            self._show(organization_id, own)

    @property
    def _is_shut(self) -> bool:
        return self._line.is_open or self._several_fail

    def _left(self, own: Organization, now: float) -> float:
        """By its own circuit, and the shared one. Who has not failed recently need not wait for those who have."""
        if own.trying_until > now and (open_circuits := self._open_for(own)):
            return min(own.trying_until - now, max(circuit.pause(now) for circuit in open_circuits))
        left = max(own.left(now), self._line.left(now))
        if self._several_fail and own.failures:  # counted from its own failure: those of others do not put off its try
            left = max(left, own.failed_at + self._several.pause(own.failed_at) - now)
        if self._is_shut and any(self._organizations[other].trying_until > now for other in self._trying):
            left = max(left, self._tried_at + TURN_SECONDS - now)
        return left

    def _may_pass(self, organization_id: UUID, now: float) -> bool:
        return self._left(self._organizations[organization_id], now) <= 0

    def _open_for(self, own: Organization) -> list[Circuit]:
        shared = [self._several] if self._several_fail else []
        return [*shared, *(circuit for circuit in (own, self._line) if circuit.is_open)]

    def _judge_several(self, now: float) -> None:
        """Whether it is the broker that fails, and not some organization there."""
        self._several.fail(now)
        if self._several_fail or self._several.failures < FAILURES:
            return
        organizations = self._organizations.values()
        recent = [organization for organization in organizations if now - organization.seen_at <= RECENT_SECONDS]
        failing = sum(1 for organization in recent if organization.failures)
        if failing >= 2 and 2 * failing > len(recent):
            self._several_fail = True
            self._several.failing_from = now

    def _ended(self, organization_id: UUID) -> Organization:
        now = self._clock()
        own = self._of(organization_id, now)
        own.seen_at, own.trying_until = now, 0.0
        self._trying.discard(organization_id)
        return own

    def _of(self, organization_id: UUID, now: float) -> Organization:
        own = self._organizations.get(organization_id)
        if own is None:
            self._forget(now)
            own = self._organizations[organization_id] = Organization(seen_at=now)
        return own

    def _forget(self, now: float) -> None:
        """Those that have not tried for long: otherwise all that ever traded would be kept."""
        if now - self._forgot_at < RECENT_SECONDS:
            return
        self._forgot_at = now
        for organization_id, own in list(self._organizations.items()):
            if now - max(own.seen_at, own.trying_until) > FORGET_SECONDS:
                del self._organizations[organization_id]
                self._trying.discard(organization_id)
                self._open_organizations.discard(organization_id)
        self._organizations_changed(len(self._open_organizations))

    def _show(self, organization_id: UUID, own: Organization) -> None:
        counted = len(self._open_organizations)
        (self._open_organizations.add if own.is_open else self._open_organizations.discard)(organization_id)
        if len(self._open_organizations) != counted:
            self._organizations_changed(len(self._open_organizations))
        state = CLOSED if not self._is_shut else HALF_OPEN if self._trying else OPEN
        if self.state != state:
            self.state = state
            self._changed(state)
