"""Processes that send the same few requests on many connections as fast as they are answered."""

import json
import pickle
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from attack_flood import TENTHS
from attack_http import written
from attack_platform import Platform
from attack_tenants import JSON, Builder, Tenant, bearer, create, invented, keyed

FLOOD = Path(__file__).with_name("attack_flood.py")
BATCH = 100
LONG_LOG = 15
"""Batches in the log that is verified."""
KEYS = 20
"""Of a loud tenant: no quota of one key ends the attack."""
STOP_S = 20.0
PUSHED_BACK_S, RETRY_AFTER_S = 60.0, 2.0
"""So long a platform that is behind may refuse what an attack prepares, and so long the next try waits."""
WORKED_ON = frozenset({"200", "200 overloaded", "429 too_many_requests"})
"""The last waited in vain for its tenant's share of the threads, which others of the same attack held. A batch that is
pushed back was decided, command by command, and the backlog that the attack has made is still worked off. Who is
refused by a quota takes nothing, and is not among them."""
SERVED = 0.5
"""Of the requests that were answered while others were measured, at least so many must have been worked on."""


STRANGERS = frozenset({"401 unauthenticated", "401 unknown_key", "429 too_many_requests"})


@dataclass
class Attack:
    address: tuple[str, int]
    requests: list[bytes]
    connections: int
    effective: frozenset[str] = WORKED_ON
    """Answers of requests that took from the platform what the attack is meant to take."""
    streams: bool = False
    _process: Any = None
    _seen: list[tuple[int, str, int]] = field(default_factory=list)
    """Tenth of a second, answer, how often."""

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(FLOOD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pickle.dump((self.address, self.requests, self.connections, self.streams), self._process.stdin)
        self._process.stdin.close()
        self._process.stdin = None

    def stop(self) -> None:
        self._process.terminate()
        try:
            printed, _ = self._process.communicate(timeout=STOP_S)
            self._seen = json.loads(printed)
        finally:
            self._process.kill()
            self._process.wait()

    def answers(self, began: float, ended: float) -> Counter[str]:
        """Between two moments of the monotonic clock; known once it has stopped."""
        found: Counter[str] = Counter()
        for tenth, answer, number in self._seen:
            if began * TENTHS <= tenth <= ended * TENTHS:
                found[answer] += number
        return found

    def took_place(self, answers: Counter[str]) -> bool:
        effective = sum(answers[answer] for answer in self.effective)
        return effective > 0 and effective >= SERVED * answers.total()


def loud_keys(builder: Builder, loud: Tenant, count: int = KEYS) -> list[str]:
    return [builder.identity.key(UUID(loud.id), "paper") for _ in range(count)]


def batches(platform: Platform, builder: Builder, keys: int = KEYS) -> Attack:
    loud = builder.tenant("loud", trades=False)
    body = json.dumps({"commands": [create()["command"]] * BATCH}).encode()
    path = f"/v1/accounts/{loud.accounts['paper']}/intents/batch"
    sent = [written("POST", path, (*keyed(key), JSON), body) for key in loud_keys(builder, loud, keys)]
    return Attack(platform.web, sent, 20)


def verifications(platform: Platform, builder: Builder) -> Attack:
    loud = builder.tenant("loud", trades=False)
    keys, account = loud_keys(builder, loud), loud.accounts["paper"]
    for number in range(LONG_LOG):
        accepted_batch(builder, account, keys[number % len(keys)], create()["command"])
    path = f"/v1/accounts/{account}/intents/verify"
    return Attack(platform.web, [written("GET", path, keyed(key)) for key in keys], 20)


def accepted_batch(builder: Builder, account: str, key: str, command: dict[str, Any]) -> None:
    """A hundred of the command, every one of them accepted: else what they prepare would be missing."""
    left, deadline = BATCH, time.monotonic() + PUSHED_BACK_S
    while left:
        body = {"commands": [command] * left}
        made = builder.call("POST", f"/v1/accounts/{account}/intents/batch", keyed(key), body)
        refused = [result for result in made["results"] if result["status"] != 201]
        is_behind = all(result["problem"]["code"] == "overloaded" for result in refused)
        if not is_behind or (refused and time.monotonic() > deadline):
            raise RuntimeError(f"{len(refused)} of {BATCH} commands were refused: {refused[0]}")
        left = len(refused)
        time.sleep(RETRY_AFTER_S if left else 0)


def invented_keys(platform: Platform) -> Attack:
    """Refused, or to be retried later: a stranger's requests are never more than that."""
    sent = [written("GET", "/v1/accounts", keyed(invented())) for _ in range(2_000)]
    return Attack(platform.web, sent, 64, STRANGERS)


def stream_openings(platform: Platform, builder: Builder) -> Attack:
    """Streams that are closed as soon as they are open."""
    loud = builder.tenant("loud", trades=False)
    path = f"/v1/accounts/{loud.accounts['paper']}/events"
    users = [builder.identity.user_token(loud.subject("admin"), loud.external_id, "admin") for _ in range(KEYS)]
    credentials = [*map(keyed, loud_keys(builder, loud)), *map(bearer, users)]
    return Attack(
        platform.events,
        [written("GET", path, headers) for headers in credentials],
        64,
        frozenset({"200"}),
        streams=True,
    )
