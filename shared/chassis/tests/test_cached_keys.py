"""Keys of a provider: fetched seldom, kept while it cannot be reached."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chassis import tokens


class Fetches:
    """A key source's other end: counts, and fails while `down`."""

    def __init__(self, *kids: str) -> None:
        self.kids, self.count, self.down = list(kids), 0, False

    def __call__(self) -> Mapping[str, Mapping[str, Any]]:
        self.count += 1
        if self.down:
            raise OSError("down")
        return {kid: {"kid": kid} for kid in self.kids}


def test_a_flood_of_unknown_key_ids_causes_one_fetch_in_the_cooldown() -> None:
    fetches = Fetches("known")
    keys = tokens.CachedKeys(fetches, keep_s=300, cooldown_s=3600)

    found = [keys.find(f"unknown-{number}") for number in range(10_000)]

    assert set(found) == {None}
    assert fetches.count == 1


def test_a_new_key_is_found_by_one_fetch_once_the_cooldown_is_over() -> None:
    fetches = Fetches("old")
    keys = tokens.CachedKeys(fetches, keep_s=300, cooldown_s=10)
    assert keys.find("old")
    fetches.kids.append("new")
    assert keys.find("new") is None

    keys._fetched_at -= 10  # instead of waiting

    assert keys.find("new") and fetches.count == 2


def test_old_keys_are_kept_while_the_provider_cannot_be_reached() -> None:
    fetches = Fetches("known")
    keys = tokens.CachedKeys(fetches, keep_s=0.05, cooldown_s=0.0)
    assert keys.find("known")
    fetches.down = True
    time.sleep(0.1)

    assert keys.find("known")
    assert keys.find("unknown") is None


def test_without_any_key_no_token_is_judged() -> None:
    fetches = Fetches()
    fetches.down = True
    keys = tokens.CachedKeys(fetches, keep_s=300, cooldown_s=10)

    for _ in range(3):
        with pytest.raises(tokens.KeysUnavailable):
            keys.find("known")
    assert fetches.count == 1


def test_who_comes_during_the_first_fetch_waits_for_its_keys() -> None:
    def slowly() -> Mapping[str, Mapping[str, Any]]:
        time.sleep(0.2)
        return {"known": {"kid": "known"}}

    keys = tokens.CachedKeys(slowly, keep_s=300, cooldown_s=10)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: keys.find("known"), range(8)))

    assert None not in found


def test_once_a_fetch_has_failed_nobody_waits_for_the_next_and_known_keys_go_on() -> None:
    fetches = Fetches("known")
    keys = tokens.CachedKeys(fetches, keep_s=300, cooldown_s=0)
    assert keys.find("known")
    fetches.down = True
    assert keys.find("unknown") is None
    fetching, over = threading.Event(), threading.Event()

    def hang() -> Mapping[str, Mapping[str, Any]]:
        fetching.set()
        over.wait()
        return {"known": {"kid": "known"}, "new": {"kid": "new"}}

    keys._fetch = hang
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(keys.find, "new")
        fetching.wait()
        with pytest.raises(tokens.KeysUnavailable):
            keys.find("new")
        assert keys.find("known")
        over.set()

    assert first.result() and keys.find("new")
