"""Once a PUT has answered, whoever reads the rules obeys it: real threads, real connections."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from chassis import db
from control_rules import Command, CommandType, OrderSide, Verdict, evaluate, facts_from_row
from control_rules.rows import RULES_COLUMNS
from controls.app import create_app

BUY = Command(CommandType.CREATE, "AAPL", OrderSide.BUY, Decimal(1))
AS_INTENTS = text("""
    SELECT a.time_zone, a.disabled AS account_disabled, a.version AS account_version, r.*
    FROM accounts_api.account a CROSS JOIN LATERAL controls_api.rules(a.organization_id, a.id, 'AAPL') r
    WHERE a.id = :account_id
""")


@pytest.fixture(scope="module")
def intents_engine(platform: Any) -> Any:
    """The database as the intents service enters it: nothing but what is published."""
    engine = create_engine(db.with_driver(platform.database_url("intents")), pool_size=6)
    yield engine
    engine.dispose()


def decide(connection: Any, account_id: Any) -> Any:
    row = connection.execute(AS_INTENTS, {"account_id": account_id}).one()
    return evaluate(facts_from_row(row._mapping), BUY, datetime.now(UTC))


def test_no_reader_that_begins_after_the_answer_sees_an_older_control(
    setting: Any, organization: Any, intents_engine: Any, platform: Any
) -> None:
    app = create_app(platform.web_environment("controls"))
    account = setting.account(organization)
    stop, answered, counts = threading.Event(), [0], [0] * 4
    headers = {"Authorization": f"Bearer {organization.tokens['admin']}"}
    path = f"/v1/controls/accounts/{account}/symbols/AAPL"

    def write(_: int) -> int:
        """Two writers; the version that has been answered only ever grows."""
        client, count = app.test_client(), 0
        while not stop.is_set():
            answer = client.put(path, json={"manually_disabled": True}, headers=headers)
            assert answer.status_code in (200, 201)
            with lock:
                answered[0] = max(answered[0], answer.json["version"])
            count += 1
        return count

    def read(number: int) -> int:
        stale = 0
        with intents_engine.connect() as connection:
            while not stop.is_set():
                with lock:
                    seen = answered[0]
                with connection.begin():
                    decision = decide(connection, account)
                if seen:
                    [check] = [check for check in decision.checks if check.control == "symbol_manual"]
                    stale += check.version < seen or decision.decision is not Verdict.REFUSED
                    counts[number] += 1
        return stale

    lock = threading.Lock()
    with ThreadPoolExecutor(6) as pool:
        writers, readers = [pool.submit(write, n) for n in range(2)], [pool.submit(read, n) for n in range(4)]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (answered[0] <= 20 or min(counts) <= 25):
            time.sleep(0.1)
        stop.set()
        written = sum(writer.result() for writer in writers)
        stale = sum(reader.result() for reader in readers)
    app.extensions["deps"].engine.dispose()

    assert stale == 0
    assert written > 20 and min(counts) > 25
    assert [event["version"] for event in setting.events(account)] == list(range(1, written + 1))


def test_writers_at_once_create_once_and_lose_no_update(setting: Any, organization: Any, platform: Any) -> None:
    app = create_app(platform.web_environment("controls"))
    account = setting.account(organization)
    headers = {"Authorization": f"Bearer {organization.tokens['admin']}"}
    fields = [{"trading_start": "09:30:00"}, {"trading_end": "16:00:00"}, {"stale_order_millis": 5000}]
    barrier = threading.Barrier(6)

    def patch(number: int) -> int:
        barrier.wait()
        path = f"/v1/controls/accounts/{account}/symbols/AAPL/time"
        return int(app.test_client().patch(path, json=fields[number % 3], headers=headers).status_code)

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(patch, range(6)))
    app.extensions["deps"].engine.dispose()

    [row] = setting.rows("symbol_time", account)
    assert statuses == [200] * 5 + [201]
    assert (str(row["trading_start"]), str(row["trading_end"]), row["stale_order_millis"], row["version"]) == (
        "09:30:00",
        "16:00:00",
        5000,
        6,
    )


def test_with_if_match_exactly_one_of_many_writers_wins(setting: Any, organization: Any, platform: Any) -> None:
    app = create_app(platform.web_environment("controls"))
    account = setting.account(organization)
    headers = {"Authorization": f"Bearer {organization.tokens['admin']}", "If-Match": '"1"'}
    path = f"/v1/controls/accounts/{account}/symbols/AAPL"
    app.test_client().put(path, json={"manually_disabled": True}, headers={"Authorization": headers["Authorization"]})
    barrier = threading.Barrier(6)

    def put(_: int) -> int:
        barrier.wait()
        return int(app.test_client().put(path, json={"manually_disabled": False}, headers=headers).status_code)

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(put, range(6)))
    app.extensions["deps"].engine.dispose()

    assert statuses == [200, *[412] * 5]


def test_the_published_rules_have_the_columns_that_the_loader_reads_and_always_one_row(
    setting: Any, organization: Any, intents_engine: Any
) -> None:
    account = setting.account(organization)
    with intents_engine.connect() as connection:
        rows = connection.execute(AS_INTENTS, {"account_id": account}).all()
        decision = decide(connection, account)

    assert [set(row._fields) - {"time_zone", "account_disabled", "account_version"} for row in rows] == [
        set(RULES_COLUMNS)
    ]
    assert decision.checks == (("account", 1, "PASSED"),)


def test_every_kind_of_control_reaches_the_reader_through_the_published_rules(
    setting: Any, controls: Any, intents_engine: Any
) -> None:
    limits = {
        "max_quantity": "0.5",
        "max_notional": "1",
        "price_collar_bps": 1,
        "max_orders_per_minute": 1,
        "max_orders_per_day": 1,
    }
    controls.symbol("PUT", "AAPL", body={"manually_disabled": True, "manual_reason": "r"})
    controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00", "stale_order_millis": 1000})
    controls.symbol("PUT", "AAPL", "/limits", limits)
    controls.call("PUT", "/limits", limits)
    controls.call("PUT", "", {"trading_state": "HALTED", "reason": "r"})
    organization_switch = controls.call("PUT", "/v1/controls/organization", {"trading_state": "REDUCING"})
    with intents_engine.connect() as connection:
        facts = facts_from_row(connection.execute(AS_INTENTS, {"account_id": controls.account_id}).one()._mapping)
        others = connection.execute(
            text("SELECT stale_order_millis FROM controls_api.symbol_time WHERE account_id = :id"),
            {"id": controls.account_id},
        ).scalars()

        assert list(others) == [1000]
    controls.call("DELETE", "/v1/controls/organization")

    assert facts.account_switch and facts.account_switch.trading_state == "HALTED"
    assert facts.organization_switch and facts.organization_switch.version == organization_switch.json["version"]
    assert facts.symbol_manual and facts.symbol_manual.manually_disabled
    assert facts.symbol_time and str(facts.symbol_time.trading_start) == "09:30:00"
    assert facts.account_limits == facts.symbol_limits
    assert facts.symbol_limits and facts.symbol_limits.max_quantity == Decimal("0.5")
    for part in ("", "/time", "/limits"):
        controls.symbol("DELETE", "AAPL", part)
    controls.call("DELETE", "/limits")
    controls.call("DELETE", "")
    with intents_engine.connect() as connection:
        assert decide(connection, controls.account_id).checks == (("account", 1, "PASSED"),)


def test_the_rules_are_read_by_primary_keys_alone(intents_engine: Any, setting: Any, organization: Any) -> None:
    with setting.platform.admin() as admin:
        admin.exec_driver_sql(
            "INSERT INTO controls.symbol_manual (account_id, symbol, organization_id, manually_disabled) "
            "SELECT gen_random_uuid(), 'AAPL', gen_random_uuid(), true FROM generate_series(1, 20000)"
        )
        admin.exec_driver_sql("ANALYZE controls.symbol_manual")
    account = setting.account(organization)
    scans = text(
        "SELECT seq_scan, idx_scan FROM pg_stat_xact_all_tables "
        "WHERE schemaname = 'controls' AND relname = 'symbol_manual'"
    )
    with intents_engine.connect() as connection, connection.begin():
        before = connection.execute(scans).one_or_none() or (0, 0)
        for _ in range(10):
            decide(connection, account)
        after = connection.execute(scans).one()
    with setting.platform.admin() as admin:
        admin.exec_driver_sql("DELETE FROM controls.symbol_manual WHERE symbol = 'AAPL' AND version = 1")

    assert (after[0] - before[0], after[1] - before[1]) == (0, 10)
