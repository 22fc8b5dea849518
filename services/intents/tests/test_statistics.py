"""GET …/intents/stats: exact at any moment, whether or not the log has been counted into buckets yet."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text

from intents import model, store, usecases
from intents.model import Update
from intents.model.statistics import percentile
from tip_testing.commands import cancel, create, limit

from .broker_side import report
from .conftest import Desk
from .test_controls import disable


def stats(desk: Desk, window: str = "last_day") -> Any:
    answer = desk.get(f"/stats?time_window={window}")
    assert answer.status_code == 200
    return answer.json


def test_an_account_without_intents_has_empty_statistics_of_the_full_shape(desk: Desk) -> None:
    answer = desk.get("/stats").json

    assert answer["time_window"] == "last_day"
    assert (answer["total_actions"], answer["total_intents"], answer["fill_rate"]) == (0, 0, None)
    assert answer["by_type"] == {"CREATE": 0, "REPLACE": 0, "CANCEL": 0}
    assert answer["by_status"] == {status.value: 0 for status in model.Status}
    assert answer["latency_ms"] == dict.fromkeys(("submit_p50", "submit_p95", "fill_p50", "fill_p95"))
    assert answer["by_symbol"] == answer["by_tag"] == [] and answer["refusals"] == {}
    assert answer["from"].endswith("Z") and answer["to"].endswith("Z")


def test_few_new_entries_of_a_log_are_counted_and_not_rolled_up_yet(desk: Desk) -> None:
    for _ in range(3):
        desk.created(create())

    usecases.run_maintenance(desk.deps, roll_up_from=4)
    assert (desk.rows("statistic"), stats(desk, "last_day")["total_actions"]) == ([], 3)

    desk.created(create())
    usecases.run_maintenance(desk.deps, roll_up_from=4)
    assert desk.rows("statistic")
    assert stats(desk, "last_day")["total_actions"] == 4


def test_the_statistics_follow_the_log_and_stay_the_same_when_it_is_rolled_up(desk: Desk) -> None:
    disable(desk, "MSFT")
    desk.submit(create(symbol="MSFT"))
    filled, cancelled, _ = (desk.created(limit(quantity="10"))["intent_id"] for _ in range(3))
    desk.created(create(symbol="TSLA"))
    report(desk, filled, Update.SUBMITTED)
    report(desk, filled, Update.ACCEPTED)
    report(desk, filled, Update.FILLED, execution_id="e", last_quantity=Decimal(10), last_price=Decimal(1))
    desk.created(cancel(cancelled))
    report(desk, cancelled, Update.CANCELED)

    fresh = {window: stats(desk, window) for window in model.WINDOWS}
    usecases.run_maintenance(desk.deps)
    desk.execute("UPDATE intents.intent SET status = status WHERE account_id = :account_id")
    rolled = {window: stats(desk, window) for window in model.WINDOWS}

    assert len(desk.rows("statistic")) > 10
    for window in model.WINDOWS:
        assert {**fresh[window], "to": 0, "from": 0} == {**rolled[window], "to": 0, "from": 0}
        assert fresh[window]["total_actions"] == 5
        assert fresh[window]["total_intents"] == 4
        assert fresh[window]["by_type"] == {"CREATE": 4, "REPLACE": 0, "CANCEL": 1}
        assert {name: n for name, n in fresh[window]["by_status"].items() if n} == {
            "PENDING": 2,
            "FILLED": 1,
            "CANCELED": 1,
        }
        assert fresh[window]["by_symbol"] == [
            {"symbol": "AAPL", "total_actions": 4},
            {"symbol": "TSLA", "total_actions": 1},
        ]
        assert fresh[window]["fill_rate"] == 0.25
        assert fresh[window]["refusals"] == {"SYMBOL_DISABLED": 1}
        assert fresh[window]["latency_ms"]["fill_p50"] >= fresh[window]["latency_ms"]["submit_p50"] > 0
    assert fresh["all"]["from"] is None


AGES = {
    "last_hour": timedelta(minutes=50),
    "last_day": timedelta(hours=20),
    "last_week": timedelta(days=6),
    "last_month": timedelta(days=29),
    "all": timedelta(days=4000),
}


@pytest.mark.parametrize("roll", [False, True])
def test_each_window_counts_what_is_young_enough_for_it(desk: Desk, roll: bool) -> None:
    for age in AGES.values():
        desk.created(create())
        desk.execute("ALTER TABLE intents.action DISABLE TRIGGER ALL")
        desk.execute(
            "UPDATE intents.action SET created_at = now() - :age, intent_created_at = now() - :age "
            "WHERE account_id = :account_id AND created_at > now() - interval '40 minutes'",
            age=age,
        )
        desk.execute("ALTER TABLE intents.action ENABLE TRIGGER ALL")
    if roll:
        usecases.run_maintenance(desk.deps)

    counted = [stats(desk, window)["total_actions"] for window in AGES]
    statuses = [stats(desk, window)["by_status"]["PENDING"] for window in AGES]

    assert counted == statuses == [1, 2, 3, 4, 5]


def test_rolling_up_in_any_portions_agrees_with_counting_the_intents(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intents.store.statistics.ROLLED_AT_ONCE", 3)
    chance = random.Random(7)
    intents: list[str] = []
    for step in range(60):
        if not intents or chance.random() < 0.4:
            intents.append(desk.created(limit())["intent_id"])
        elif chance.random() < 0.3:
            desk.submit(cancel(chance.choice(intents)))
        else:
            more = {"execution_id": f"e{step}", "last_quantity": Decimal(1), "last_price": Decimal(5)}
            update = chance.choice([Update.SUBMITTED, Update.ACCEPTED, Update.FILLED, Update.CANCELED])
            report(desk, chance.choice(intents), update, **(more if update is Update.FILLED else {}))
        if chance.random() < 0.2:
            usecases.run_maintenance(desk.deps)

    found = stats(desk, "all")

    naive = Counter(row["status"] for row in desk.rows("intent"))
    assert {name: count for name, count in found["by_status"].items() if count} == dict(naive)
    assert found["total_actions"] == len(desk.rows("action"))
    while usecases.run_maintenance(desk.deps):
        pass
    assert {**stats(desk, "all"), "to": 0} == {**found, "to": 0}


def test_only_the_twenty_busiest_symbols_are_listed(desk: Desk) -> None:
    for place in range(22):
        desk.created(create(symbol=f"S{place:02}"))
    desk.created(create(symbol="S21"))

    symbols = [counted["symbol"] for counted in stats(desk)["by_symbol"]]

    assert len(symbols) == 20
    assert symbols[:2] == ["S21", "S00"]


def test_old_minutes_and_old_keys_are_forgotten_by_the_scheduler(desk: Desk) -> None:
    desk.submit(create(), Idempotency_Key="old")
    usecases.run_maintenance(desk.deps)
    desk.execute("UPDATE intents.statistic SET bucket = bucket - interval '3 days' WHERE account_id = :account_id")
    desk.execute(
        "UPDATE intents.idempotency SET created_at = now() - interval '25 hours' WHERE account_id = :account_id"
    )
    desk.created(create())

    usecases.run_maintenance(desk.deps)

    assert desk.rows("idempotency") == []
    ages = {(row["width"], row["bucket"] < datetime.now(UTC) - timedelta(days=1)) for row in desk.rows("statistic")}
    assert ages == {("minute", False), ("hour", False), ("hour", True), ("day", False), ("day", True)}
    assert stats(desk, "all")["total_actions"] == 2


def test_old_refusals_and_the_minutes_of_an_account_that_only_refuses_are_forgotten(desk: Desk) -> None:
    disable(desk)
    for _ in range(2):
        assert desk.submit(create()).status_code == 422
    desk.execute(
        "UPDATE intents.refusal SET created_at = created_at - interval '31 days' WHERE account_id = :account_id "
        "AND id = (SELECT id FROM intents.refusal WHERE account_id = :account_id LIMIT 1)"
    )
    desk.execute("UPDATE intents.statistic SET bucket = bucket - interval '31 days' WHERE account_id = :account_id")

    usecases.run_maintenance(desk.deps)

    assert len(desk.rows("refusal")) == 1
    assert {row["width"] for row in desk.rows("statistic")} == {"hour", "day"}
    assert stats(desk, "all")["refusals"] == {"SYMBOL_DISABLED": 2}

    usecases.run_maintenance(desk.deps, refusals_kept_days=1)
    assert len(desk.rows("refusal")) == 1


def test_the_time_a_statement_may_take_is_limited_until_the_transaction_ends(desk: Desk) -> None:
    allowed = text("SHOW statement_timeout")
    with desk.deps.engine.connect() as tx:
        before = tx.execute(allowed).scalar_one()
        store.limit_statements(tx, 1_234)
        meanwhile = tx.execute(allowed).scalar_one()
        tx.rollback()

        assert (meanwhile, tx.execute(allowed).scalar_one()) == ("1234ms", before)


def test_a_percentile_is_the_edge_of_its_bin() -> None:
    assert percentile({}, 50) is None
    assert percentile({"0": 1}, 95) == 1.0
    assert percentile({"4": 50, "8": 45, "40": 5}, 50) == 2.0
    assert percentile({"4": 50, "8": 45, "40": 5}, 95) == 4.0
    assert percentile({"4": 50, "8": 44, "40": 6}, 95) == 1024.0
