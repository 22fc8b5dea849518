"""Nobody waits for another organization's failures, in whatever order calls begin and end.

Each story is played from its own seed, which a failure names; `BREAKER_STORIES=20000 pytest …` plays that many.
"""

import os
import random
from uuid import UUID

from intents.execution.breaker import (
    CLOSED,
    LONGEST_TRY_SECONDS,
    TURN_SECONDS,
    Breaker,
)

from .test_breaker import A, B, C, Clock, D

STORIES = int(os.environ.get("BREAKER_STORIES", "3000"))
STEPS = 60


class Calls:
    """Any organizations call in any order, several at a time, and end in any way."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.clock = Clock()
        self.breaker = Breaker(clock=self.clock)
        self.calls: list[UUID] = []
        self.trying: dict[UUID, float] = {}
        self.failing: set[UUID] = set()
        self.unreached = False

    def play(self) -> None:
        """Some stories use few of the organizations, and few of the ways to end: as often as not what matters."""
        callers = self.dice.sample([A, B, C, D], self.dice.randint(1, 4))
        endings = ["succeeded", "failed", "unreached", "nothing"]
        ends = self.dice.sample(endings, self.dice.randint(1, 4))
        for _ in range(STEPS):
            step = self.dice.randrange(3)
            if step == 0:
                self.clock.now += self.dice.choice([0.01, 0.3, 1.0, 20.0])
            elif step == 1:
                self.call(self.dice.choice(callers))
            elif self.calls:
                self.end(self.calls.pop(self.dice.randrange(len(self.calls))), self.dice.choice(ends))

    def call(self, organization_id: UUID) -> None:
        was_shut = self.breaker.state != CLOSED
        is_trying = self.trying.get(organization_id, 0.0) > self.clock.now
        wait = self.breaker.wait(organization_id)
        if not self.unreached and organization_id not in self.failing and not is_trying:
            assert wait <= TURN_SECONDS, "others' failures cost no more than a turn"
            assert wait == 0 or len(self.failing) > 1, "and those of one other nothing"
        if is_trying and was_shut:
            assert wait > 0, "one try at a time"
        if not was_shut and organization_id not in self.failing:
            assert wait == 0, "a closed circuit keeps nobody waiting"
        if wait == 0:
            self.calls.append(organization_id)
            if was_shut:
                self.trying[organization_id] = self.clock.now + LONGEST_TRY_SECONDS

    def end(self, organization_id: UUID, end: str) -> None:
        self.trying.pop(organization_id, None)
        if end == "succeeded":
            self.breaker.succeeded(organization_id)
            self.failing.discard(organization_id)
            self.unreached = False
            assert self.breaker.state == CLOSED
        elif end == "nothing":
            self.breaker.abandon_trial(organization_id)
        else:
            self.breaker.failed(organization_id, connected=end == "failed")
            self.failing |= {organization_id} if end == "failed" else set()
            self.unreached |= end == "unreached"

    def judge_tries(self) -> None:
        """Who has a try would pass, and who has none would not."""
        tries, organization_id = self.breaker.tries(), self.dice.choice([A, B, C, D])
        may_try = min(tries.in_all, tries.of.get(organization_id, tries.of_each)) > 0
        passes = self.breaker.wait(organization_id) == 0
        assert may_try == passes
        if passes:
            self.breaker.abandon_trial(organization_id)

    def judge(self) -> None:
        """Whoever waits as long as `wait` says passes in the end."""
        for organization_id in (A, B, C, D):
            for _ in range(200):
                if (wait := self.breaker.wait(organization_id)) == 0:
                    break
                self.clock.now += wait
            else:
                raise AssertionError(f"{organization_id} never passes")


def test_nobody_waits_for_the_failures_of_another_whatever_happens():
    for seed in range(STORIES):
        calls = Calls(seed)
        try:
            calls.play()
            calls.judge_tries()
            calls.judge()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
