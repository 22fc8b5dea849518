"""Executors stop and start: what is submitted meanwhile is accepted, then refused, then accepted again."""

from collections.abc import Callable
from typing import Any

import pytest

from tip_testing.commands import cancel, create, limit, replace
from tip_testing.waiting import eventually

from ..conftest import Desk
from .conftest import Start

MAX_AGE_SECONDS = "1.5"


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    return new_desk()


def test_a_platform_that_falls_behind_refuses_orders_until_it_has_caught_up(
    desk: Desk, new_desk: Callable[..., Desk], start: Start, reaches: Callable[..., Any]
) -> None:
    start("scheduler", BACKLOG_MAX_AGE_SECONDS=MAX_AGE_SECONDS)
    other_tenant = new_desk()
    taken = [desk.created(limit(symbol="SIM.OPEN"))]

    refused = eventually(lambda: submitted(desk, taken))

    assert len(taken) > 1 and (refused.json["code"], refused.json["backlog"]) == ("overloaded", "account")
    assert int(refused.headers["Retry-After"]) > 0
    first, second, *_ = (action["intent_id"] for action in taken)
    assert desk.submit(replace(first)).json["code"] == "overloaded"
    assert desk.submit(cancel(second)).status_code == desk.get(f"/{first}").status_code + 1 == 201
    assert other_tenant.submit(create(symbol="SIM.OPEN")).status_code == 201

    start("executor")
    eventually(lambda: desk.submit(create(symbol="SIM.OPEN")).status_code == 201, every=0.1)
    reaches(taken[0], "ACCEPTED")
    reaches(taken[1], "CANCELED")


def submitted(desk: Desk, taken: list[Any]) -> Any:
    """The answer once it is a refusal; what was accepted before is added to what is taken."""
    answer = desk.submit(limit(symbol="SIM.OPEN"))
    if answer.status_code == 503:
        return answer
    assert answer.status_code == 201
    taken.append(answer.json)
    return None
