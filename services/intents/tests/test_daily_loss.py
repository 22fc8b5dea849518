"""An account that loses more in a day than it may is reported once; what it was worth at the day's start is kept."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from intents import usecases
from tip_testing.commands import create

from .conftest import Desk
from .test_controls import limits

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


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


def test_another_time_zone_begins_no_day_a_second_time(new_desk: Callable[..., Desk]) -> None:
    desk, now = new_desk(time_zone="Pacific/Kiritimati"), datetime.now(UTC)
    limits(desk, max_daily_loss=100)
    worth(desk, "1000", now)
    worth(desk, "899", now + timedelta(seconds=1))

    desk.execute("UPDATE accounts.account SET time_zone = 'Pacific/Pago_Pago' WHERE id = :account_id")

    assert desk.submit(create()).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"
    worth(desk, "898", now + timedelta(seconds=2))
    assert desk.submit(create()).json["reasons"][0]["code"] == "DAILY_LOSS_ABOVE_LIMIT"


def test_an_account_without_the_limit_is_reported_never(desk: Desk) -> None:
    worth(desk, "1000", NOON)
    worth(desk, "1", NOON + timedelta(minutes=1))

    assert breaches(desk) == []
