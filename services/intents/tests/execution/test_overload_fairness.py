"""One organization floods its accounts with orders that are slow at the broker: it is pushed back, nobody else is."""

import time
from collections import Counter
from collections.abc import Callable

from tip_testing.commands import create
from tip_testing.waiting import eventually

from ..conftest import Desk
from .conftest import Start

MAX_AGE_SECONDS = "4"
SECONDS = 10.0
SLOW, HANGS, QUICK = create(symbol="SIM.SLOW"), create(symbol="SIM.TIMEOUT_AFTER_ACCEPT"), create(symbol="SIM.OPEN")


def test_no_order_is_refused_for_what_another_organization_has_waiting(
    new_desk: Callable[..., Desk], start: Start
) -> None:
    first, quiet, hanging = new_desk(), new_desk(), new_desk()
    loud = [first, *(new_desk(organization=first.organization) for _ in range(3))]
    for _ in range(60):
        for desk in loud:
            desk.created(SLOW)
        hanging.created(HANGS)
    start("scheduler", BACKLOG_MAX_AGE_SECONDS=MAX_AGE_SECONDS)
    start("executor")
    eventually(lambda: any(desk.submit(SLOW).status_code == 503 for desk in loud))

    answers, ends = Counter[tuple[str, int]](), time.monotonic() + SECONDS
    while time.monotonic() < ends:
        answers["quiet", quiet.submit(QUICK).status_code] += 1
        answers.update(("loud", desk.submit(SLOW).status_code) for desk in loud)
        time.sleep(0.2)

    assert answers["loud", 503] > 0, answers
    assert {status for name, status in answers if name == "quiet"} == {201}, answers
