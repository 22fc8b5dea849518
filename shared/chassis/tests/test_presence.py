"""Whether a tenant is alone."""

import os
import time
from collections.abc import Callable

import pytest

from chassis.presence import OwnPresence, Presence, SharedPresence


@pytest.fixture(params=[OwnPresence, SharedPresence], ids=["of one process", "of several"])
def presence(request: pytest.FixtureRequest) -> Presence[str]:
    made: Presence[str] = request.param()
    return made


def test_a_tenant_is_alone_however_much_it_sends(presence: Presence[str]) -> None:
    for _ in range(10):
        presence.note("a")

    assert presence.is_alone("a") and not presence.is_alone("b")


def test_it_is_not_until_a_second_after_any_other_was_there(presence: Presence[str]) -> None:
    presence.note("b")
    presence.note("a")
    assert not presence.is_alone("a")

    time.sleep(1.05)
    presence.note("a")

    assert presence.is_alone("a")


def test_of_many_tenants_each_sees_the_others(presence: Presence[str]) -> None:
    names = [f"tenant-{number}" for number in range(500)]
    for name in names:
        presence.note(name)

    assert not any(map(presence.is_alone, names))


def test_any_two_tenants_see_each_other() -> None:
    """Also where they have a slot in common."""

    def are_seen(one: str, other: str) -> bool:
        presence = SharedPresence()
        presence.note(one)
        presence.note(other)
        return not presence.is_alone(one) and not presence.is_alone(other)

    assert all(are_seen("mine", f"theirs-{number}") for number in range(2000))


def test_a_tenant_that_another_process_sees_is_seen_here() -> None:
    presence = SharedPresence()

    in_child(lambda: presence.note("theirs"))

    assert not presence.is_alone("mine")


def in_child(function: Callable[[], None]) -> None:
    child = os.fork()
    if not child:
        function()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
