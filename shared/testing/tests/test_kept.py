from collections.abc import Iterator
from contextlib import contextmanager

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
