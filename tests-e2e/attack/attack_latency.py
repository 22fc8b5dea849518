"""How long a quiet tenant waits for what it does all day: submit, read, write a control, open a stream."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from attack_flood import NO_ANSWER, shown
from attack_http import HttpConnection, NoAnswer, written
from attack_platform import Platform
from attack_tenants import JSON, Builder, Tenant, create, keyed

PAUSE_S = 0.04
ACCEPTED = frozenset({"200", "201"})
Send = Callable[[HttpConnection], str]


@dataclass
class Latencies:
    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: dict[str, list[str]] = field(default_factory=dict)
    """Of a refusal with its code."""

    def p99(self, kind: str) -> float:
        ordered = sorted(self.seconds[kind])
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]

    def shown(self) -> dict[str, int]:
        return {kind: round(1000 * self.p99(kind)) for kind in self.seconds}

    @property
    def fewest(self) -> int:
        return min(map(len, self.seconds.values()))


@dataclass(frozen=True)
class Probe:
    """What the quiet tenant does, each kind on a connection and with a key of its own, all at the same time."""

    addresses: dict[str, tuple[str, int]]
    sends: dict[str, Send]

    @classmethod
    def of(cls, platform: Platform, builder: Builder, quiet: Tenant) -> "Probe":
        keys = (keyed(builder.identity.key(UUID(quiet.id), "paper")) for _ in range(4))
        account = quiet.accounts["paper"]
        submit, control = json.dumps(create()).encode(), json.dumps({"manually_disabled": False}).encode()
        path = f"/v1/controls/accounts/{account}/symbols/QUIET"
        sends = {
            "submit": _whole(written("POST", f"/v1/accounts/{account}/intents", (*next(keys), JSON), submit)),
            "read": _whole(written("GET", f"/v1/accounts/{account}/intents/{quiet.intents['paper']}", next(keys))),
            "control write": _whole(written("PUT", path, (*next(keys), JSON), control)),
            "stream": _opening(written("GET", f"/v1/accounts/{account}/events", next(keys))),
        }
        return cls({kind: platform.events if kind == "stream" else platform.web for kind in sends}, sends)

    def measured(self, samples: int, within_s: float, at_least_s: float = 0.0) -> Latencies:
        """As many of each; fewer when time is over, more while it is not yet time to end."""
        found, began = Latencies(), time.monotonic()
        times = began + at_least_s, began + within_s
        for kind in self.sends:
            found.seconds[kind], found.statuses[kind] = [], []
        threads = [threading.Thread(target=self._measure, args=(kind, samples, times, found)) for kind in self.sends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def _measure(self, kind: str, samples: int, times: tuple[float, float], found: Latencies) -> None:
        earliest, latest = times
        with HttpConnection(self.addresses[kind]) as http:
            for number in count():
                began = time.monotonic()
                if (number >= samples and began > earliest) or (number and began > latest):
                    return
                try:
                    status = self.sends[kind](http)
                except (NoAnswer, OSError):
                    http.close()
                    status = NO_ANSWER
                found.seconds[kind].append(time.monotonic() - began)
                found.statuses[kind].append(status)
                time.sleep(PAUSE_S)


def _whole(request: bytes) -> Send:
    return lambda http: shown(http.exchange(request))


def _opening(request: bytes) -> Send:
    """A new stream, until it is open."""

    def send(http: HttpConnection) -> str:
        http.send(request)
        status, _ = http.head()
        http.close()
        return str(status)

    return send
