"""The action log: append-only, in one sequence with the account events, and read in pages."""

from collections.abc import Callable

import psycopg2
import pytest

from intents.model import Update
from tip_testing.commands import cancel, create, limit

from .broker_side import accept, accepted, fill, report
from .conftest import Desk

CHANGES = [
    "UPDATE intents.{table} SET type = type",
    "UPDATE intents.{table} SET created_at = now() WHERE false",
    "DELETE FROM intents.{table}",
    "DELETE FROM intents.{table} WHERE false",
    "TRUNCATE intents.{table}",
]


@pytest.mark.parametrize("table", ["action", "account_event"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("role", ["intents", "superuser"])
def test_the_database_lets_nobody_change_the_log(desk: Desk, table: str, change: str, role: str) -> None:
    desk.created(create())
    url = desk.platform.admin_url if role == "superuser" else desk.platform.database_url("intents")
    connection = psycopg2.connect(url)

    with pytest.raises(psycopg2.errors.InsufficientPrivilege) as refused:
        connection.cursor().execute(change.format(table=table))

    connection.close()
    wall = "is append-only" if role == "superuser" else "permission denied"
    assert wall in str(refused.value)


@pytest.mark.parametrize("sequence", [0, -1])
@pytest.mark.parametrize(
    ("role", "table"), [("intents", "action"), ("intents_web", "action"), ("intents", "account_event")]
)
def test_nothing_is_written_before_the_place_where_verification_begins(
    desk: Desk, role: str, table: str, sequence: int
) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    connection = psycopg2.connect(desk.platform.database_url(role))
    cursor = connection.cursor()
    cursor.execute(f"SET tip.organizations = '{{{desk.organization.id}}}'")

    with pytest.raises(psycopg2.errors.CheckViolation, match=f"{table}_sequence_check"):
        cursor.execute(
            f"INSERT INTO intents.{table} "
            f"SELECT (jsonb_populate_record(line, jsonb_build_object('sequence', {sequence}))).* "
            f"FROM intents.{table} line WHERE account_id = '{desk.account_id}' LIMIT 1"
        )

    connection.close()


def test_actions_and_account_events_share_one_sequence(desk: Desk) -> None:
    intent_id = desk.created(limit(quantity="10"))["intent_id"]
    report(desk, intent_id, Update.SUBMITTED)
    fill(desk, accept(desk, intent_id, "b-1"), "4", "99", "e-1")
    desk.created(cancel(intent_id))

    log = desk.execute("SELECT * FROM intents_api.event_log WHERE account_id = :account_id ORDER BY sequence")
    events = log.mappings().all()

    assert [(event["sequence"], event["type"]) for event in events] == [
        (1, "INTENT_ACTION"),
        (2, "BROKER_ORDER"),
        (3, "BROKER_ORDER"),
        (4, "BROKER_TRADE"),
        (5, "BROKER_ORDER"),
        (6, "INTENT_ACTION"),
    ]
    assert events[4]["payload"] == {
        "intent_id": intent_id,
        "broker_order_id": "b-1",
        "symbol": "AAPL",
        "order_side": "BUY",
        "order_kind": "Limit",
        "status": "PARTIALLY_FILLED",
        "quantity": "10",
        "filled_quantity": "4",
        "leaves_quantity": "6",
        "average_fill_price": "99",
        "limit_price": "99.50",
        "stop_price": None,
        "reason_code": None,
        "reason": None,
        "execution_id": "e-1",
        "last_quantity": "4",
        "last_price": "99",
        "outcome": None,
    }
    assert [action["sequence"] for action in desk.get().json["data"]] == [1, 6]
    assert desk.get("/verify").json["valid"] is True
    assert desk.rows("position")[0]["quantity"] == 4


def test_the_log_is_published_to_the_stream_gateway_and_nothing_else_is(desk: Desk) -> None:
    connection = psycopg2.connect(desk.platform.database_url("stream_gateway"))
    cursor = connection.cursor()
    cursor.execute("SELECT count(*) FROM intents_api.event_log; SELECT count(*) FROM intents_api.account_head")

    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        cursor.execute("SELECT * FROM intents.action")
    connection.close()


def test_pages_go_on_where_the_last_one_ended(desk: Desk) -> None:
    sequences = [desk.created(create())["sequence"] for _ in range(7)]

    seen, cursor = [], None
    while True:
        page = desk.get(f"?limit=3{f'&next_cursor={cursor}' if cursor else ''}").json
        seen += [action["sequence"] for action in page["data"]]
        assert len(page["data"]) <= 3
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == sequences
    assert desk.get("?limit=7").json["next_cursor"] is None


def test_the_latest_action_and_the_history_show_the_state_as_it_is_now(
    desk: Desk, new_desk: Callable[..., Desk]
) -> None:
    intent_id = desk.created(limit())["intent_id"]
    cancelled = desk.created(cancel(intent_id))

    latest = desk.get(f"/{intent_id}").json
    history = desk.get(f"/{intent_id}/actions").json["data"]

    assert latest == cancelled
    assert [action["command"]["type"] for action in history] == ["CREATE", "CANCEL"]
    assert {action["state"]["status"] for action in history} == {"PENDING_CANCEL"}
    page = desk.get(f"/{intent_id}/actions?limit=1").json
    assert desk.get(f"/{intent_id}/actions?limit=1&next_cursor={page['next_cursor']}").json["data"] == [latest]
    other = new_desk(organization=desk.organization)
    assert other.get(f"/{intent_id}").status_code == other.get(f"/{intent_id}/actions").status_code == 404
