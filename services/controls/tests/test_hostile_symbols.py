"""Hostile symbols and paths: a problem+json that points at the fault, and nothing written."""

import random
from typing import Any
from urllib.parse import quote, quote_from_bytes
from uuid import uuid4

import pytest

FINE_CHARACTERS = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-")
BY_HAND = [
    "..%2f..%2forganization",
    "..%2F..%2F..%2Forganization",
    "%2e%2e%2f%2e%2e%2forganization",
    "..%5c..%5corganization",
    "%2Ftime",
    "%2F",
    "%252F",
    "BTC%252FUSD",
    "%00",
    "AAPL%00",
    "%00AAPL",
    "AAPL%0A",
    "%0AAAPL",
    "AAPL%0D%0AX-Evil:1",
    "%20",
    "%20%20",
    "AA%20PL",
    "AAPL%09",
    "%09AAPL",
    "%C2%A0AAPL",
    "%FF%FE",
    "%C0%AF",
    "%ED%A0%80",
    "AAPL%E2%80%AE",
    "%E2%80%AELPAA",
    "%E2%80%8BAAPL",
    "%D0%90APL",
    "%EF%BC%A1%EF%BC%A1%EF%BC%B0%EF%BC%AC",
    "%C5%BF",
    "%C3%9F",
    "%C4%B1BM",
    "%F0%9F%9A%80",
    "%F0%9F%87%BA%F0%9F%87%B8",
    "A%CC%81APL",
    "AAPL%3Bdrop",
    "AAPL%3Ftime",
    "AAPL%23time",
    "'%20OR%20'1'='1",
    "%27%3B--",
    "%24%7Bjndi%3A",
    "%7B%7B7*7%7D%7D",
    "%3Cscript%3E",
    "-AAPL",
    ".AAPL",
    ":AAPL",
    "_AAPL",
    "A" * 33,
    "A" * 10_240,
    "%41" * 33,
    "(AAPL)",
    "AAPL*",
    "AAPL+",
    "A,B",
    "A=B",
    "A@B",
    "%",
    "%zz",
    "%2",
    "A%",
]


def hostile_segments() -> list[str]:
    """200 segments of a path that are no symbols, always the same ones."""
    chance, found = random.Random(5), list(BY_HAND)
    while len(found) < 200:
        length = chance.choice((1, 2, 5, 31, 32, 33, 200))
        if chance.random() < 0.5:
            raw = bytes(chance.randrange(256) for _ in range(length))
            candidate, text = quote_from_bytes(raw, safe=""), raw.decode("utf-8", "replace")
        else:
            text = "".join(
                chr(chance.choice((chance.randrange(0x20, 0x7F), chance.randrange(0xA0, 0xD7FF))))
                for _ in range(length)
            )
            candidate = quote(text, safe="")
        if not set(text.strip(" ")) <= FINE_CHARACTERS:
            found.append(candidate)
    return found


def test_two_hundred_hostile_symbols_are_refused_with_a_pointer_and_reach_nothing_else(
    setting: Any, controls: Any
) -> None:
    segments = hostile_segments()
    before = setting.everything()
    requests = [("PUT", "", {"manually_disabled": True}), ("PATCH", "/time", {"trading_start": "09:30:00"})]
    assert len(segments) == 200

    for segment in segments:
        for method, part, body in requests:
            answer = controls.call(method, f"/symbols/{segment}{part}", body)

            assert (segment, answer.status_code) == (segment, 422)
            assert answer.content_type == "application/problem+json"
            assert answer.json["errors"][0]["pointer"] == "/symbol"
    assert setting.everything() == before


@pytest.mark.parametrize(
    "segment", [".", "..", "", "AAPL/", "AAPL/time/", "AAPL/nothing", "BTC/USD", "../organization"]
)
def test_real_slashes_and_dots_find_no_other_route(setting: Any, controls: Any, segment: str) -> None:
    before = setting.everything()

    answer = controls.call("PUT", f"/symbols/{segment}", {"manually_disabled": True})

    assert answer.status_code in (404, 405, 422)
    assert answer.content_type == "application/problem+json"
    assert setting.everything() == before


def test_a_slash_in_a_symbol_reaches_the_symbol(controls: Any) -> None:
    made = controls.call("PUT", "/symbols/BTC%2FUSD", {"manually_disabled": True})
    time = controls.call("PATCH", "/symbols/btc%2fusd/time", {"trading_start": "09:30:00"})

    assert (made.status_code, made.json["symbol"]) == (201, "BTC/USD")
    assert (time.status_code, time.json["symbol"]) == (201, "BTC/USD")
    assert made.headers["Location"].endswith("/symbols/BTC%2FUSD")
    assert controls.call("GET", made.headers["Location"]).json == made.json
    assert controls.call("GET", time.headers["Location"]).json == time.json


@pytest.mark.parametrize("part", ["time", "limits", "TIME"])
def test_a_symbol_that_ends_like_a_route_is_still_a_symbol(controls: Any, part: str) -> None:
    made = controls.call("PUT", f"/symbols/BTC%2F{part}", {"manually_disabled": True})

    assert (made.status_code, made.json["symbol"]) == (201, f"BTC/{part.upper()}")
    assert controls.call("GET", "/symbols/BTC/time").status_code == 404, "BTC itself has no time control"


def test_an_id_that_is_no_uuid_is_a_bad_request(setting: Any, controls: Any) -> None:
    for bad in ("1", "not-a-uuid", "{" + str(uuid4()) + "}", uuid4().hex, "%00", "..%2f"):
        answer = controls.call("GET", f"/v1/controls/accounts/{bad}/symbols/AAPL")

        assert (bad, answer.status_code) == (bad, 400)
