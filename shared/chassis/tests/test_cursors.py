"""Cursors: only what this list wrote is read."""

import pytest

from chassis.cursors import Cursors, limit
from chassis.problems import Problem

CURSORS = Cursors("key")
LIST = ("organization", "account", "actions")


def test_a_cursor_gives_back_its_position() -> None:
    assert CURSORS.read(LIST, CURSORS.write(LIST, [7, "2026-01-01"])) == [7, "2026-01-01"]
    assert CURSORS.read(LIST, None) is None


def test_a_cursor_altered_anywhere_is_refused() -> None:
    cursor = CURSORS.write(LIST, [12345])
    altered = {
        cursor[:i] + other + cursor[i + 1 :] for i in range(len(cursor)) for other in "Az9-_" if other != cursor[i]
    }

    for forged in altered | {"", cursor[:-1], cursor + "A", cursor + "=", "…", "a" * 10_000}:
        with pytest.raises(Problem) as refusal:
            CURSORS.read(LIST, forged)
        assert (refusal.value.status, refusal.value.code) == (400, "bad_cursor")


@pytest.mark.parametrize("foreign", [("organization", "other", "actions"), ("organization", "account"), ()])
def test_a_cursor_of_another_list_is_refused(foreign: tuple[str, ...]) -> None:
    with pytest.raises(Problem):
        CURSORS.read(LIST, CURSORS.write(foreign, [1]))


def test_a_cursor_of_another_key_is_refused() -> None:
    with pytest.raises(Problem):
        CURSORS.read(LIST, Cursors("another key").write(LIST, [1]))


@pytest.mark.parametrize("text", ["0", "-1", "501", "1e9", "abc", "", " 5", "5.0", "\u0665", "0x10", "9" * 400])
def test_a_limit_outside_1_to_500_is_refused(text: str) -> None:
    with pytest.raises(Problem) as refusal:
        limit(text)
    assert refusal.value.status == 400


def test_a_limit_has_a_default() -> None:
    assert (limit(None), limit("1"), limit("500")) == (50, 1, 500)
