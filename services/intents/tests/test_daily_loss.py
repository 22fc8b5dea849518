"""An account that loses more in a day than it may is reported once; what it was worth at the day's start is kept."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from intents import usecases
from tip_testing.commands import create

from .conftest import Desk
from .test_controls import limits

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
ZONES = ("Pacific/Kiritimati", "Etc/GMT+12")


def worth(desk: Desk, equity: str, at: datetime) -> None:
    """The broker reports a balance; the scheduler judges it."""
    desk.execute(
        "INSERT INTO intents.balance (account_id, organization_id, currency, cash, equity, buying_power, updated_at) "
        "VALUES (:account_id, :organization_id, 'USD', 0, :equity, 0, :at) "
        "ON CONFLICT (account_id) DO UPDATE SET equity = excluded.equity, updated_at = excluded.updated_at",
        organization_id=desk.organization.id,
        equity=Decimal(equity),
        at=at,
    )
    while usecases.judge_daily_losses(desk.deps):
        pass


def breaches(desk: Desk) -> list[Any]:
    return [row["payload"] for row in desk.outbox() if row["event_type"] == "daily_loss.breached"]


def test_a_loss_above_the_limit_is_published_once_a_day(desk: Desk) -> None:
    limits(desk, max_daily_loss=100)

    worth(desk, "1000", NOON)
    worth(desk, "900", NOON + timedelta(minutes=1))
    assert breaches(desk) == []
    for minute, equity in ((2, "899.99"), (3, "950"), (4, "800")):
        worth(desk, equity, NOON + timedelta(minutes=minute))

    [breach] = breaches(desk)
    assert (breach["loss"], breach["max_daily_loss"], breach["day"]) == ("100.01", "100", "2026-07-01")
    assert (breach["account_id"], breach["organization_id"]) == (str(desk.account_id), str(desk.organization.id))
    worth(desk, "800", NOON + timedelta(days=1))
    worth(desk, "699", NOON + timedelta(days=1, minutes=1))
    assert [found["day"] for found in breaches(desk)] == ["2026-07-01", "2026-07-02"]


def test_the_day_begins_at_midnight_in_the_accounts_zone(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(time_zone="America/New_York")
    limits(desk, max_daily_loss=100)

    worth(desk, "1000", datetime(2026, 7, 1, 3, 59, tzinfo=UTC))
    worth(desk, "850", datetime(2026, 7, 1, 4, 0, tzinfo=UTC))
    worth(desk, "800", datetime(2026, 7, 2, 3, 59, tzinfo=UTC))

    assert breaches(desk) == []
    [row] = desk.rows("day_equity")
    assert (str(row["day"]), row["equity"]) == ("2026-07-01", Decimal(850))


def test_after_the_loss_only_what_reduces_is_accepted(desk: Desk) -> None:
    now = datetime.now(UTC)
    limits(desk, max_daily_loss=100)
    assert desk.submit(create()).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"  # nothing is known yet
    worth(desk, "1000", now)
    assert desk.submit(create(quantity="1")).status_code == 201
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "VALUES (:account_id, 'AAPL', 10, now())"
    )

    worth(desk, "899", now + timedelta(seconds=1))

    assert desk.submit(create(quantity="1")).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"
    assert desk.submit(create(quantity="10", side="SELL")).status_code == 201
    assert desk.submit(create(quantity="1", side="SELL")).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"


@pytest.mark.parametrize("order", [ZONES, ZONES[::-1]])
def test_another_time_zone_forgets_no_loss(new_desk: Callable[..., Desk], order: Sequence[str]) -> None:
    """One of the two is always in another day than UTC."""
    desk, now = new_desk(time_zone="UTC"), datetime.now(UTC)
    limits(desk, max_daily_loss=100)
    worth(desk, "1000", now)
    worth(desk, "899", now + timedelta(milliseconds=1))

    for place, time_zone in enumerate(order, 2):
        desk.execute("UPDATE accounts.account SET time_zone = :zone WHERE id = :account_id", zone=time_zone)
        assert desk.submit(create()).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"
        worth(desk, "898", now + timedelta(milliseconds=place))
        assert desk.submit(create()).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"
    assert len(breaches(desk)) == 1


def test_a_day_begins_at_the_first_midnight_of_the_new_zone_after_the_last_has_ended(desk: Desk) -> None:
    limits(desk, max_daily_loss=100)
    worth(desk, "1000", NOON)

    desk.execute("UPDATE accounts.account SET time_zone = 'Pacific/Kiritimati' WHERE id = :account_id")

    for at, equity, start in (
        (NOON + timedelta(hours=11), "950", 1000),
        (NOON + timedelta(hours=12), "1100", 1100),  # midnight in UTC; of the day that goes on the highest counts
        (NOON + timedelta(hours=21), "1050", 1100),
        (NOON + timedelta(hours=22), "1040", 1040),  # midnight in Kiritimati
    ):
        worth(desk, equity, at)
        assert desk.rows("day_equity")[0]["equity"] == start


def test_an_account_without_the_limit_is_reported_never(desk: Desk) -> None:
    worth(desk, "1000", NOON)
    worth(desk, "1", NOON + timedelta(minutes=1))

    assert breaches(desk) == []
