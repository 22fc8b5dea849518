"""GET …/orders: the intents of an account as orders, by any filter, page by page, whatever the account's history."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, TextClause, text
from werkzeug.test import TestResponse

from chassis import tenancy
from chassis.principals import Kind, Principal
from intents import model, schemas_orders, store, usecases
from intents.model import Status, Update
from intents.usecases import orders as usecases_orders
from tip_testing.commands import cancel, create, limit, replace

from .broker_side import report
from .conftest import Desk
from .serving import all_pages
from .test_client_ids import labelled


def get(desk: Desk, **query: Any) -> TestResponse:
    named = {name.rstrip("_"): value for name, value in query.items()}
    return desk.client.get(f"/v1/accounts/{desk.account_id}/orders?{urlencode(named)}", headers=desk.headers)


def listed(desk: Desk, **query: Any) -> list[dict[str, Any]]:
    return all_pages(partial(get, desk), **query)


def ids(orders: list[dict[str, Any]]) -> list[str]:
    return [order["intent_id"] for order in orders]


def test_an_order_shows_its_state_its_labels_and_its_last_action(desk: Desk) -> None:
    created = desk.created(labelled(limit(quantity="10"), client_id="one", tags=["b", "a"]))
    replaced = desk.created(replace(created["intent_id"], Limit={"quantity": "20", "limit_price": "98"}))

    [order] = get(desk).json["data"]

    assert set(order) == set(schemas_orders.Order().fields)
    assert (order["intent_id"], order["client_id"], order["tags"]) == (created["intent_id"], "one", ["b", "a"])
    assert (order["symbol"], order["order_side"], order["created_at"]) == ("AAPL", "BUY", created["created_at"])
    assert order["last_action"] == replaced == desk.get(f"/{created['intent_id']}").json
    assert order["state"] == replaced["state"]
    assert order["spec"]["Limit"]["quantity"] == "10"  # until the broker has confirmed the replacement


def test_open_closed_and_each_status_are_found(desk: Desk) -> None:
    waiting, canceling, filled = (desk.created(limit())["intent_id"] for _ in range(3))
    desk.created(cancel(canceling))
    report(desk, filled, Update.SUBMITTED)
    report(desk, filled, Update.FILLED, execution_id="e", last_quantity=10, last_price=1)

    assert ids(listed(desk)) == [waiting, canceling, filled]
    assert ids(listed(desk, order="desc")) == [filled, canceling, waiting]
    assert ids(listed(desk, status="open")) == [waiting, canceling]
    assert ids(listed(desk, status="closed")) == ids(listed(desk, status="FILLED")) == [filled]
    assert ids(listed(desk, status="PENDING_CANCEL")) == [canceling]
    assert listed(desk, status="REJECTED") == []


def test_orders_are_found_by_symbol_tag_and_client_id(desk: Desk) -> None:
    first = desk.created(labelled(create(symbol="AAPL"), client_id="one", tags=["a", "both"]))["intent_id"]
    second = desk.created(labelled(create(symbol="MSFT"), client_id="two", tags=["both"]))["intent_id"]
    desk.created(create(symbol="AAPL"))

    assert ids(listed(desk, tag="both")) == [first, second]
    assert ids(listed(desk, tag="both", symbol="msft")) == [second]
    assert ids(listed(desk, client_id="one")) == [first]
    assert listed(desk, client_id="one", symbol="MSFT") == listed(desk, client_id="one", tag="other") == []
    assert ids(listed(desk, symbol="MSFT", order="desc")) == [second]
    assert listed(desk, status="closed", tag="both") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "filled"),
        ("symbol", "A B"),
        ("symbol", "\0"),
        ("tag", ""),
        ("tag", "x" * 33),
        ("client_id", "\0"),
        ("client_id", "caf\u00e9"),
        ("from", "yesterday"),
        ("to", "2026-02-30T00:00:00Z"),
        ("order", "ASC"),
    ],
)
def test_a_filter_that_is_none_is_refused_by_name(desk: Desk, name: str, value: str) -> None:
    answer = get(desk, **{name: value})

    assert (answer.status_code, answer.json["code"]) == (400, "bad_time" if name in ("from", "to") else "bad_filter")
    assert name in answer.json["detail"]


def test_a_cursor_goes_on_in_its_own_list_only(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    for _ in range(3):
        desk.created(create())
    other = new_desk(organization=desk.organization)
    cursor = get(desk, status="open", limit=1).json["next_cursor"]

    assert get(desk, status="open", limit=2, next_cursor=cursor).status_code == 200
    for reader, query in ((desk, {}), (desk, {"status": "open", "order": "desc"}), (other, {"status": "open"})):
        answer = get(reader, **query, next_cursor=cursor)
        assert (answer.status_code, answer.json["code"]) == (400, "bad_cursor")


def test_another_organization_sees_nothing(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    desk.created(labelled(client_id="one"))
    stranger = new_desk()

    answer = stranger.client.get(f"/v1/accounts/{desk.account_id}/orders?client_id=one", headers=stranger.headers)

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
INSERT = text("""
    WITH made AS (
        INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, route_strategy,
            spec, quantity, status, created_at, updated_at, next_attempt_at, open_actions, client_id, tags)
        SELECT :account_id, id, :organization_id, 'paper', symbol, 'BUY', 'AUTO', '{"Market": {"quantity": "1"}}', 1,
               status, created_at, created_at, created_at, 0, client_id, coalesce(tags, '{}')
        FROM json_to_recordset(:rows) AS given (id uuid, symbol text, status text, created_at timestamptz,
                                                client_id text, tags text[])
        RETURNING *
    ), tagged AS (
        INSERT INTO intents.intent_tag
        SELECT account_id, organization_id, tag, created_at, id FROM made, unnest(tags) tag
    )
    INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
        symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status,
        intent_created_at, previous_hash, hash, created_at)
    SELECT account_id, :first + row_number() OVER (), gen_random_uuid(), organization_id, environment, id, 'CREATE',
        '{}', symbol, order_side, spec, 'AUTO', 'api_key', 'x', '{"decision": "ALLOWED", "checks": []}', status,
        created_at, '', '', created_at
    FROM made
""")


def insert(desk: Desk, rows: list[dict[str, Any]], first: int = 0) -> None:
    values = {"account_id": desk.account_id, "organization_id": desk.organization.id, "first": first}
    desk.admin.execute(INSERT, {**values, "rows": json.dumps(rows, default=str)})


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.uuids(version=4),
            "symbol": st.sampled_from(["A", "B"]),
            "status": st.sampled_from(list(Status)),
            "created_at": st.integers(0, 5).map(lambda minutes: BEGIN + timedelta(minutes=minutes)),
            "client_id": st.sampled_from([None, None, "one", "two"]),
            "tags": st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
        }
    ),
    max_size=20,
    unique_by=(lambda row: row["id"], lambda row: row["client_id"] or row["id"]),
)
MOMENTS = st.none() | st.integers(-1, 6).map(lambda minutes: BEGIN + timedelta(minutes=minutes))
FILTERS = st.builds(
    model.OrderFilter,
    st.sampled_from([tuple(Status), *model.STATUS_FILTERS.values()]),
    st.sampled_from([None, "A"]),
    st.sampled_from([None, "x"]),
    st.sampled_from([None, None, "one"]),
    MOMENTS,
    MOMENTS,
    st.booleans(),
)


def expected(rows: list[dict[str, Any]], wanted: model.OrderFilter) -> Iterator[UUID]:
    for row in sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=wanted.descending):
        if (
            row["status"] in wanted.statuses
            and wanted.group_id is None  # none of the rows is a leg
            and wanted.symbol in (None, row["symbol"])
            and wanted.client_id in (None, row["client_id"])
            and (wanted.tag is None or wanted.tag in row["tags"])
            and (wanted.since is None or row["created_at"] >= wanted.since)
            and (wanted.until is None or row["created_at"] < wanted.until)
        ):
            yield row["id"]


def paged(desk: Desk, wanted: model.OrderFilter, size: int) -> Iterator[UUID]:
    after = None
    reader = usecases.Reader(Principal(Kind.USER, "x", desk.organization.id), desk.account_id)
    while True:
        query = usecases_orders.OrderQuery(wanted, after, size)
        with tenancy.serving([desk.organization.id]):
            page = usecases_orders.list_orders(desk.app.extensions["deps"], reader, lambda query=query: query)
        assert len(page.orders) <= size
        yield from (order.last_action.intent_id for order in page.orders)
        if (after := page.last) is None:
            return


@settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(ROWS, st.lists(FILTERS, min_size=1, max_size=6), st.integers(1, 4), st.integers(2, 5))
def test_any_filter_lists_exactly_what_it_says(
    desk: Desk, rows: list[dict[str, Any]], filters: list[model.OrderFilter], size: int, candidates: int
) -> None:
    desk.execute("SET session_replication_role = replica")  # else a trigger keeps the log as it is
    for table in ("action", "intent", "intent_tag"):
        desk.execute(f"DELETE FROM intents.{table} WHERE account_id = :account_id")
    desk.execute("RESET session_replication_role")
    insert(desk, rows)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(usecases_orders, "CANDIDATES", candidates)
        for wanted in filters:
            assert list(paged(desk, wanted, size)) == list(expected(rows, wanted))


def _rows(plan: dict[str, Any]) -> Iterator[int]:
    """What the plan's scans have read, also what a filter then dropped."""
    if "Scan" in plan["Node Type"]:
        yield round((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])
    for inner in plan.get("Plans", ()):
        yield from _rows(inner)


class Explained:
    """Runs statements, and counts the rows that they touch."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self.rows = connection, 0

    def execute(self, statement: TextClause, values: dict[str, Any]) -> Any:
        plan = self._connection.execute(text(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}"), values).scalar_one()
        self.rows += sum(_rows(plan[0]["Plan"]))
        return self._connection.execute(statement, values)


def cost(desk: Desk, wanted: model.OrderFilter, limit: int = 20) -> int:
    tx: Any = Explained(desk.admin)
    keys = store.order_keys(tx, desk.account_id, wanted, None, limit + 1)
    store.orders(tx, desk.account_id, wanted, keys, limit + 1)
    return int(tx.rows)


def grow(desk: Desk, start: int, end: int) -> None:
    """Orders that were filled long ago, one a minute."""
    for first in range(start, end, 5_000):
        moments = (BEGIN - timedelta(minutes=place) for place in range(first, min(end, first + 5_000)))
        filled = {"symbol": "A", "status": "FILLED"}
        insert(desk, [{**filled, "id": uuid4(), "created_at": moment} for moment in moments], 1_000 + first)
    desk.execute("ANALYZE intents.intent, intents.intent_tag, intents.action")


def test_a_page_of_open_orders_costs_the_same_whatever_has_ended(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk()
    for place in range(30):
        desk.created(labelled(create(symbol="A"), client_id=str(place), tags=["x"]))
    filters = [
        model.OrderFilter(model.STATUS_FILTERS["open"]),
        model.OrderFilter(model.STATUS_FILTERS["open"], "A"),
        model.OrderFilter((Status.REJECTED,)),
        model.OrderFilter(tag="x"),
        model.OrderFilter(client_id="7"),
    ]
    wanted = [each._replace(descending=descending) for each in filters for descending in (False, True)]
    grow(desk, 0, 5_000)
    small = [cost(desk, each) for each in wanted]
    grow(desk, 5_000, 40_000)
    large = [cost(desk, each) for each in wanted]

    assert all(more <= 1.1 * before + 5 for before, more in zip(small, large, strict=True)), (small, large)
    assert max(large) < 250


def test_a_list_costs_what_it_reads_at_most(desk: Desk) -> None:
    def spent(**query: Any) -> int:
        before, after = (
            int(get(desk, **more).headers["RateLimit"].split("r=")[1].split(";")[0]) for more in ({}, query)
        )
        return before - after

    assert (spent(), spent(limit=300), spent(tag="x"), spent(tag="x", status="open")) == (1, 4, 1, 11)
