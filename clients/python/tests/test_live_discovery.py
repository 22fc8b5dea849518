"""What one request shows of the platform."""

from datetime import UTC, datetime

import pytest
from sdk_platform import Platform

import tip_client as tip
from tip_client.discovery import platform_info

DATE = "Mon, 05 Jan 2026 12:00:00 GMT"
DOCUMENT = {"info": {"version": "0.2.0"}}


@pytest.mark.parametrize(
    ("now", "offset"),
    [("12:00:00.000", 0), ("12:00:00.999", 0), ("11:59:58.000", 2), ("12:00:03.000", -2)],
)
def test_a_clock_is_compared_to_the_second(now: str, offset: float) -> None:
    moment = datetime.fromisoformat(f"2026-01-05T{now}").replace(tzinfo=UTC)

    assert platform_info(DOCUMENT, DATE, 0, moment).clock_offset == pytest.approx(offset)


def test_half_of_the_time_of_the_answer_was_its_way_back() -> None:
    moment = datetime(2026, 1, 5, 12, 0, 4, tzinfo=UTC)

    assert platform_info(DOCUMENT, DATE, 8, moment).clock_offset == 0


@pytest.mark.parametrize("date", [None, "", "soon"])
def test_a_platform_may_show_no_time(date: str | None) -> None:
    assert platform_info(DOCUMENT, date, 0, datetime.now(UTC)).clock_offset is None


@pytest.mark.parametrize("document", [None, [], {}, {"info": {}}, {"info": {"version": 2}}])
def test_another_server_is_no_platform(document: object) -> None:
    with pytest.raises(tip.UnexpectedAnswer):
        platform_info(document, DATE, 0, datetime.now(UTC))


def test_a_platform_shows_its_version_and_clock(platform: Platform) -> None:
    with tip.Client(platform.local["base_url"]) as client:
        info = client.platform()

    assert info.version and info.answered_in > 0 and abs(info.clock_offset or 0) < 2


def test_a_platform_that_is_not_there_is_called_once() -> None:
    with tip.Client("http://127.0.0.1:9") as client, pytest.raises(tip.ConnectionFailed):
        client.platform()
