"""Subscribers of the event stream, by gRPC and as server-sent events, that lose their streams and resume them."""

import hashlib
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import urllib3
from fault_journal import Journal
from google.protobuf.json_format import Parse  # type: ignore[import-untyped]

from trading_proto import trading_pb2, trading_pb2_grpc

ALL_TYPES = [number for _name, number in trading_pb2.EventType.items() if number]
SILENCE_SECONDS = 15.0
"""Heartbeats come every two seconds: after so long a silence the stream counts as lost."""
RESUMABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)


@dataclass
class Subscriber:
    """One account's stream by one transport. It notes what it was given, in the order in which it was given."""

    transport: str
    address: str
    account_id: str
    api_key: str
    journal: Journal
    dice: random.Random
    stop: threading.Event
    position: int | None = None
    epoch: str | None = None
    streams: int = 0
    ended: str | None = None
    """Why it will not come back, if so."""
    lost: list[str] = field(default_factory=list)

    def run(self) -> None:
        while not self.stop.is_set() and self.ended is None:
            self.streams += 1
            until = time.monotonic() + self.dice.uniform(2.0, 25.0)
            events = self._grpc(until) if self.transport == "grpc" else self._server_sent(until)
            for event in events:
                self._take(event)
                if self.stop.is_set():
                    break
            self.stop.wait(0.2 + self.dice.random())

    def caught_up_with(self, head: int) -> bool:
        return self.ended is not None or (self.position or 0) >= head

    def _take(self, event: trading_pb2.TradingEvent) -> None:
        if not event.type:
            self._take_mark(event)
            return
        self.epoch = event.epoch or self.epoch
        event.epoch = ""
        self.journal.write(
            {
                "n": event.sequence,
                "id": event.event_id,
                "type": trading_pb2.EventType.Name(event.type).removeprefix("EVENT_TYPE_"),
                "stream": self.streams,
                "epoch": self.epoch,
                "digest": hashlib.sha256(event.SerializeToString(deterministic=True)).hexdigest()[:32],
                "status": event.broker_order.status or None,
            }
        )
        self.position = event.sequence

    def _take_mark(self, event: trading_pb2.TradingEvent) -> None:
        """A heartbeat or the end of a replay says how far the stream has come: it must be where we are."""
        if self.position is None:
            self.journal.write({"begins": event.sequence})
            self.position = event.sequence
        elif event.sequence != self.position:
            self.journal.write({"mark": event.sequence, "at": self.position, "stream": self.streams})
        self.epoch = event.epoch or self.epoch

    def _grpc(self, until: float) -> Iterator[trading_pb2.TradingEvent]:
        request = trading_pb2.SubscribeEventsRequest(trading_account_id=self.account_id, subscriptions=ALL_TYPES)
        if self.position is not None:
            request.resume_after_sequence = self.position
            if self.epoch:
                request.resume_epoch = self.epoch
        metadata = [("x-api-key", self.api_key)]
        with grpc.insecure_channel(self.address, options=[("grpc.enable_retries", 0)]) as channel:
            stub = trading_pb2_grpc.TradingServiceStub(channel)
            stream = stub.SubscribeEvents(request, metadata=metadata, timeout=max(1.0, until - time.monotonic()))
            try:
                yield from stream
            except grpc.RpcError as error:
                self._end(error.code().name, error.code() in RESUMABLE, error.details())
            finally:
                stream.cancel()

    def _server_sent(self, until: float) -> Iterator[trading_pb2.TradingEvent]:
        headers = {"x-api-key": self.api_key}
        if self.position is not None:
            headers["Last-Event-ID"] = f"{self.position}@{self.epoch}" if self.epoch else str(self.position)
        path = f"/v1/accounts/{self.account_id}/events"
        pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(5, read=SILENCE_SECONDS))
        with suppress(urllib3.exceptions.HTTPError, OSError, ValueError), pool:
            answer = pool.request("GET", self.address + path, headers=headers, preload_content=False)
            if answer.status != 200:
                self._end(str(answer.status), answer.status in (429, 503), answer.data[:200].decode(errors="replace"))
                return
            yield from self._lines(answer, until)

    def _lines(self, answer: urllib3.BaseHTTPResponse, until: float) -> Iterator[trading_pb2.TradingEvent]:
        kind, waiting = "", b""
        for chunk in answer.stream(None):
            *lines, waiting = (waiting + chunk).split(b"\n")
            for line in lines:
                name, _, value = line.decode().partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind == "end":
                    self._end(json.loads(value)["code"], True, "")
                    return
                elif name == "data":
                    yield Parse(value, trading_pb2.TradingEvent())
            if time.monotonic() > until or self.stop.is_set():
                answer.close()
                return

    def _end(self, code: str, resumable: bool, detail: str | None) -> None:
        self.lost.append(code)
        if not resumable:
            self.ended = f"{code} {detail or ''}".strip()


@dataclass
class Subscribers:
    """One by gRPC for every account, and as many again as server-sent events for some."""

    directory: Path
    stream_target: str
    events_url: str
    api_key: str
    dice: random.Random
    all: list[Subscriber] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.directory.mkdir(exist_ok=True)

    def add(self, account_id: str, transport: str) -> None:
        journal = Journal(self.directory / f"{account_id}-{transport}.ndjson")
        address = self.stream_target if transport == "grpc" else self.events_url
        dice = random.Random(self.dice.random())
        subscriber = Subscriber(transport, address, account_id, self.api_key, journal, dice, self.stop)
        self.all.append(subscriber)
        threading.Thread(target=subscriber.run, daemon=True, name=f"{transport}-{account_id}").start()

    def wait_for(self, heads: dict[str, int], seconds: float) -> None:
        """Until everybody has come as far as the log has, or the time is over: the checker says who has not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if all(subscriber.caught_up_with(heads.get(subscriber.account_id, 0)) for subscriber in self.all):
                return
            time.sleep(0.1)
