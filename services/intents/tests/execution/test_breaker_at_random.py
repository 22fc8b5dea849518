"""Nobody waits for another organization's failures, in whatever order calls begin and end."""

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from intents.brokers.breaker import (
    CLOSED,
    LONGEST_TRY_SECONDS,
    TURN_SECONDS,
    Breaker,
)

from .test_breaker import A, B, C, Clock, D


class Calls(RuleBasedStateMachine):
    """Any organizations call in any order, several at a time, and end in any way."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = Breaker(clock=self.clock)
        self.calls: list[UUID] = []
        self.trying: dict[UUID, float] = {}
        self.failing: set[UUID] = set()
        self.unreached = False

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(organization_id=st.sampled_from([A, B, C, D]))
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

    @rule(data=st.data(), end=st.sampled_from(["succeeded", "failed", "unreached", "nothing"]))
    def end(self, data: Any, end: str) -> None:
        if not self.calls:
            return
        organization_id = self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))
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

    def teardown(self) -> None:
        """Whoever waits as long as `wait` says passes in the end."""
        for organization_id in (A, B, C, D):
            for _ in range(200):
                if (wait := self.breaker.wait(organization_id)) == 0:
                    break
                self.clock.now += wait
            else:
                raise AssertionError(f"{organization_id} never passes")


def test_nobody_waits_for_the_failures_of_another_whatever_happens():
    run_state_machine_as_test(
        Calls, settings=settings(max_examples=300, stateful_step_count=60, derandomize=True, database=None)
    )
