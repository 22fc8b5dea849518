"""What many tests share and one of them starts: it is ended once the next test is of another group.

A fixture of the session would live until the last test of all, and a whole platform that nobody needs any more still
takes a part of a processor from the tests that run.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
_KEPT = pytest.StashKey["Kept"]()


class Kept:
    def __init__(self) -> None:
        self._ends = ExitStack()
        self._made: dict[Callable[[], AbstractContextManager[Any]], Any] = {}
        self._failed: dict[Callable[[], AbstractContextManager[Any]], Exception] = {}

    def get(self, make: Callable[[], AbstractContextManager[T]]) -> T:
        if make in self._failed:
            raise self._failed[make]  # it would fail again, and take as long
        if make not in self._made:
            self._make(make)
        found: T = self._made[make]
        return found

    def _make(self, make: Callable[[], AbstractContextManager[T]]) -> None:
        try:
            self._made[make] = self._ends.enter_context(make())
        except Exception as error:
            self._failed[make] = error
            raise

    def end(self) -> None:
        self._made.clear()
        self._failed.clear()
        self._ends.close()


def kept(config: pytest.Config, make: Callable[[], AbstractContextManager[T]]) -> T:
    """What `make` makes: for a fixture whose own scope ends before the group does, or with it."""
    if _KEPT not in config.stash:
        config.stash[_KEPT] = Kept()
        config.add_cleanup(config.stash[_KEPT].end)  # a run that is interrupted has no next test
    return config.stash[_KEPT].get(make)


def end_kept(config: pytest.Config) -> None:
    if _KEPT in config.stash:
        config.stash[_KEPT].end()
