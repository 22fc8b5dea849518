"""All open streams of this process, and how many a caller may have."""

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from stream_gateway import meters
from stream_gateway.callers import Caller
from stream_gateway.hub import Hub, Stream
from stream_gateway.model import Account, Draining, EpochEnded, Subscription, TooManyStreams, begin


class Streams:
    """Used by the event loop alone, so nothing is locked."""

    def __init__(self, *, per_principal: int, per_process: int, buffer_events: int) -> None:
        self.hubs: dict[UUID, Hub] = {}
        self.draining = False
        self._per_principal, self._per_process, self._buffer = per_principal, per_process, buffer_events
        self._of: Counter[tuple[str, str]] = Counter()

    def check_room(self) -> None:
        """Refuse before anything is asked of the database."""
        if self.draining:
            raise Draining
        if self._of.total() >= self._per_process:
            raise TooManyStreams

    def open(self, caller: Caller, account: Account, subscription: Subscription, transport: str) -> Stream:
        """A stream that begins where it was resumed, else at the account's head as it was read a moment ago."""
        self.check_room()
        if self._of[caller.name] >= self._per_principal:
            raise TooManyStreams
        position = begin(subscription, account)
        self.end_other_epochs(account.epoch)
        hub = self.hubs.get(account.id)
        if hub is None:
            hub = Hub(account.id, account.organization_id, account.epoch, account.head, self._buffer)
            self.hubs[account.id] = hub
        replay_until = None if subscription.resume_after is None else account.head
        stream = Stream(hub, caller, subscription.types, position, replay_until, transport)
        hub.streams.add(stream)
        self._of[caller.name] += 1
        meters.STREAMS.labels(transport).inc()
        return stream

    def close(self, stream: Stream) -> None:
        """Nothing more is delivered to it. It counts until `release`: its subscriber may not have read the end yet."""
        stream.hub.streams.discard(stream)
        if not stream.hub.streams and self.hubs.get(stream.hub.account_id) is stream.hub:
            del self.hubs[stream.hub.account_id]
        meters.STREAMS.labels(stream.transport).dec()

    def end_other_epochs(self, epoch: str) -> None:
        """End the streams of every other epoch and drop its hubs at once: their positions mean nothing any more."""
        for hub in list(self.hubs.values()):
            if hub.epoch != epoch:
                del self.hubs[hub.account_id]
                hub.end(EpochEnded())

    def release(self, stream: Stream) -> None:
        """Its connection holds nothing of ours any more. Before that, whoever does not read gets no other instead."""
        self._of[stream.caller.name] -= 1
        if not self._of[stream.caller.name]:
            del self._of[stream.caller.name]

    def __iter__(self) -> Iterator[Stream]:
        for hub in list(self.hubs.values()):
            yield from list(hub.streams)

    def __len__(self) -> int:
        return self._of.total()
