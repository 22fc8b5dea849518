from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tip_testing.kept import Kept


def test_what_is_kept_is_made_once_until_its_group_has_ended() -> None:
    seen: list[str] = []

    @contextmanager
    def platform() -> Iterator[object]:
        seen.append("begins")
        yield object()
        seen.append("ends")

    kept = Kept()
    first = kept.get(platform)
    assert kept.get(platform) is first and seen == ["begins"]

    kept.end()
    kept.end()
    assert seen == ["begins", "ends"]
    assert kept.get(platform) is not first and seen == ["begins", "ends", "begins"]


def test_what_could_not_be_made_is_not_tried_again_within_its_group() -> None:
    tried: list[str] = []

    @contextmanager
    def platform() -> Iterator[object]:
        tried.append("begins")
        raise RuntimeError("no port is free")
        yield

    kept = Kept()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no port"):
            kept.get(platform)
    assert tried == ["begins"]

    kept.end()
    with pytest.raises(RuntimeError, match="no port"):
        kept.get(platform)
    assert tried == ["begins"] * 2
