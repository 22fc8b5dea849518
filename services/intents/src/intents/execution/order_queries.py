"""What is remembered, from one reading of an account to the next, of orders that are queried by themselves."""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from intents.execution.model.known_orders import KnownOpenOrder
from intents.execution.model.locked_intent import MISSING

FIRST_PAUSE_SECONDS = 1.0
LOST_SECONDS = 300.0
LOST = "The broker has not shown the order for some minutes."


@dataclass
class OrderQueries:
    """When the broker is queried about an order by itself.

    About one that was given up the less often, the longer it is missing. One about which the last answer was broken
    comes after all others, so that it keeps none of them from being read.
    """

    lost_seconds: float = LOST_SECONDS
    _next: dict[str, tuple[float, float]] = field(default_factory=dict)
    _broken_at: dict[str, float] = field(default_factory=dict)
    _unread_since: dict[str, float] = field(default_factory=dict)

    def is_due(self, known: KnownOpenOrder) -> bool:
        due_at, _ = self._next.get(known.client_order_id, (0.0, 0.0))
        return known.status != MISSING or time.monotonic() >= due_at

    def note_query(self, known: KnownOpenOrder) -> None:
        if known.status == MISSING:
            _, pause = self._next.get(known.client_order_id, (0.0, FIRST_PAUSE_SECONDS))
            self._next[known.client_order_id] = time.monotonic() + pause, pause * 1.5

    def in_turn(self, orders: Iterable[KnownOpenOrder]) -> list[KnownOpenOrder]:
        return sorted(orders, key=lambda known: self._broken_at.get(known.key, 0.0))

    def note_read(self, known: KnownOpenOrder) -> None:
        self._broken_at.pop(known.key, None)

    def note_broken(self, known: KnownOpenOrder) -> None:
        self._broken_at[known.key] = time.monotonic()

    def forget_all_but(self, orders: Iterable[KnownOpenOrder]) -> None:
        """What has ended need not be read any more."""
        names = {known.client_order_id for known in orders}
        self._unread_since = {name: since for name, since in self._unread_since.items() if name in names}

    def note_reading(self, orders: Iterable[KnownOpenOrder], unread: Collection[KnownOpenOrder]) -> None:
        """Of which of these a reading has not shown how much is filled."""
        names = {known.client_order_id for known in unread}
        for name in {known.client_order_id for known in orders} - names:
            self._unread_since.pop(name, None)
        self.note_unread(unread)

    def note_unread(self, orders: Iterable[KnownOpenOrder]) -> None:
        """Of what is in flight the executor finds out, and a second order of an intent is not what it waits for."""
        for known in orders:
            is_second = known.key not in ("", known.client_order_id)
            if not known.in_flight and not known.needs_operator and not is_second:
                self._unread_since.setdefault(known.client_order_id, time.monotonic())

    @property
    def has_unread(self) -> bool:
        """Whether the last reading has left an order unread: then it says little that none differs.

        For one that is lost the others are not compared more often.
        """
        return len(self._unread_since) > len(self.lost())

    def lost(self) -> list[str]:
        """Orders that no reading has shown for minutes, by client order id: only a person can find out about them."""
        now = time.monotonic()
        return [name for name, since in self._unread_since.items() if now - since >= self.lost_seconds]
