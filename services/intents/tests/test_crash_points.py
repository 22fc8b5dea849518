"""Every way to submit passes the two steps at which fault tests strike, so none is left untested by them."""

from collections.abc import Callable
from uuid import UUID

import pytest

from chassis import crashpoints
from intents import model
from intents.usecases import submit_own
from tip_testing.commands import create, limit

from .conftest import Desk
from .test_batch import submit as submit_batch
from .test_controls import limits


def cancel_as_platform(desk: Desk, intent_id: UUID) -> None:
    command = model.Cancel({"ref_intent_id": str(intent_id)}, intent_id)
    actor = model.Actor("system", "stale-orders")
    assert submit_own(desk.deps, model.Submission(desk.account_id, command, actor, caller=None, reason="STALE_ORDER"))


def submit_counted(desk: Desk, _intent_id: UUID) -> None:
    limits(desk, max_orders_per_minute=100)
    desk.created(create())


WAYS: dict[str, Callable[[Desk, UUID], object]] = {
    "fast path": lambda desk, _: desk.created(create()),
    "Flask": lambda desk, _: desk.submit(create(), query="?dry_run=false"),
    "under limits": submit_counted,
    "batch": lambda desk, _: submit_batch(desk, create()),
    "atomic batch": lambda desk, _: submit_batch(desk, create(), create(), atomic=True),
    "the platform itself": cancel_as_platform,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_submit_reaches_the_crash_points(desk: Desk, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    intent_id, reached = UUID(desk.created(limit())["intent_id"]), list[str]()
    monkeypatch.setattr(crashpoints, "reach", reached.append)

    WAYS[way](desk, intent_id)

    assert list(dict.fromkeys(reached)) == ["intents.before_commit", "intents.after_commit"]
