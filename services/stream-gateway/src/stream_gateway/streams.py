"""All open streams of this process."""

from collections.abc import Hashable, Iterator
from uuid import UUID

from stream_gateway import meters
from stream_gateway.callers import Caller
from stream_gateway.credentials import Credential
from stream_gateway.fairness import WriteScheduler
from stream_gateway.hub import Hub, Stream
from stream_gateway.model import Account, Draining, EpochEnded, Subscription, begin
from stream_gateway.quota import Owners, StreamQuota
from stream_gateway.recheck import Rechecks
from stream_gateway.stream_counts import StreamCounts


class Streams:
    """Used by the event loop alone, so nothing is locked."""

    def __init__(self, quota: StreamQuota, rechecks: Rechecks, counts: StreamCounts, *, buffer_events: int) -> None:
        self.hubs: dict[UUID, Hub] = {}
        self.draining = False
        self._quota, self._rechecks, self._counts, self._buffer = quota, rechecks, counts, buffer_events
        self._write_scheduler = WriteScheduler()
        self._credentials: dict[Hashable, Credential] = {}
        self._epoch = ""

    def check_room(self) -> None:
        """Refuse before anything is read from the database."""
        if self.draining:
            raise Draining
        self._quota.check_process()

    def open(
        self, caller: Caller, account: Account, subscription: Subscription, transport: str, verified_at: float
    ) -> Stream:
        """A stream that begins where it was resumed, else at the account's head as it was read a moment ago.

        `verified_at` is from before the caller and the account were read.
        """
        self.check_room()
        self._quota.check((caller.name, account.organization_id))
        position = begin(subscription, account)
        self.end_other_epochs(account.epoch)
        hub, credential = self._hub(account, verified_at), self._credential(caller, account, verified_at)
        replay_until = None if subscription.resume_after is None else account.head
        stream = Stream(hub, credential, subscription.types, position, replay_until, transport)
        hub.streams.add(stream)
        credential.streams.add(stream)
        self._quota.take(_owners(stream))
        meters.STREAMS.labels(transport).inc()
        self._counts.add(account.id, transport, 1)
        return stream

    def _hub(self, account: Account, verified_at: float) -> Hub:
        hub = self.hubs.get(account.id)
        is_new = hub is None
        if hub is None:
            hub = Hub(
                account.id, account.organization_id, account.epoch, account.head, self._buffer, self._write_scheduler
            )
            self.hubs[account.id] = hub
        hub.verified_at = max(hub.verified_at, verified_at)
        if is_new:
            self._rechecks.add(hub)
        return hub

    def _credential(self, caller: Caller, account: Account, verified_at: float) -> Credential:
        credential = self._credentials.get(caller.credential)
        if credential is None:
            credential = Credential(caller, account.organization_id, verified_at)
            self._credentials[caller.credential] = credential
            self._rechecks.add(credential)
        credential.verified_at = max(credential.verified_at, verified_at)
        return credential

    def close(self, stream: Stream) -> None:
        """Nothing more is delivered to it. It counts until `release`: its subscriber may not have read the end yet."""
        hub, credential = stream.hub, stream.credential
        hub.streams.discard(stream)
        if not hub.streams and self.hubs.get(hub.account_id) is hub:
            del self.hubs[hub.account_id]
        credential.streams.discard(stream)
        if not credential.streams:
            self._credentials.pop(credential.caller.credential, None)
        meters.STREAMS.labels(stream.transport).dec()
        self._counts.add(hub.account_id, stream.transport, -1)

    def end_other_epochs(self, epoch: str) -> None:
        """End the streams of every other epoch and drop its hubs at once: their positions mean nothing any more."""
        if epoch == self._epoch:
            return
        self._epoch = epoch
        for hub in list(self.hubs.values()):
            if hub.epoch != epoch:
                del self.hubs[hub.account_id]
                hub.end(EpochEnded())

    def release(self, stream: Stream) -> None:
        """Its connection holds nothing of ours any more. Before that, whoever does not read gets no other instead."""
        self._quota.give_back(_owners(stream))

    def __iter__(self) -> Iterator[Stream]:
        for hub in list(self.hubs.values()):
            yield from list(hub.streams)

    def __len__(self) -> int:
        return len(self._quota)


def _owners(stream: Stream) -> Owners:
    return stream.credential.caller.name, stream.hub.organization_id
