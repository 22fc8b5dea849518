"""GET /v1/accounts/outbox/health, the specification's tables row by row."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from accounts import model
from accounts.app import create_app
from chassis import db
from chassis.outbox import Event, Outbox
from chassis.outbox.store import BACKLOG
from tip_testing.accounts_caller import Caller, bearer
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

PATH = "/v1/accounts/outbox/health"
TOTALS = ("pending", "processing", "failed", "completed")
NAIVE = text("""
    SELECT status, event_type, count(*) AS count, min(created_at) AS oldest_created_at, max(attempts) AS max_attempts,
           min(claimed_at) FILTER (WHERE status = 'processing') AS oldest_claimed_at
    FROM accounts.outbox GROUP BY status, event_type ORDER BY status, event_type
""")

UNCOUNTED = text("""
    SELECT count(*) FROM accounts.outbox
    WHERE status = 'pending' AND pending_xid >= (SELECT counted_below FROM accounts.outbox_head)
""")


@pytest.fixture(scope="module")
def internal(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture(scope="module")
def client(platform: Platform, internal: Organization) -> FlaskClient:
    configured = f"{uuid4()}, {internal.id}"
    return create_app(platform.web_environment("accounts", INTERNAL_ORGANIZATIONS=configured)).test_client()


@pytest.fixture(scope="module")
def operator(client: FlaskClient, identity: IdentityFixtures) -> Caller:
    return Caller(client, bearer(identity.service_account(["credential:read"]).token))


@pytest.fixture
def outbox(platform: Platform, client: FlaskClient) -> Iterator[Outbox]:
    """Empty."""
    with platform.admin() as connection:
        connection.execute(
            text("TRUNCATE accounts.outbox, accounts.outbox_completed, accounts.outbox_backlog RESTART IDENTITY")
        )
        connection.execute(text("UPDATE accounts.outbox_head SET last_position = 0, counted_below = 0"))
    engine = db.engine(platform.database_url("accounts"), pool_size=2, name="tests")
    yield Outbox(engine, "accounts", attempt_limit=3)
    engine.dispose()


# Who may call


def test_a_client_credential_with_the_scope_may_call(operator: Caller) -> None:
    assert operator.get(PATH).status_code == 200


def test_an_admin_of_an_internal_organization_may_call(client: FlaskClient, internal: Organization) -> None:
    assert Caller(client, bearer(internal.tokens["admin"])).get(PATH).status_code == 200


def _refused(client: FlaskClient, headers: dict[str, str]) -> tuple[int, str]:
    answer = client.get(PATH, headers=headers)
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.text and "{" not in answer.text
    return answer.status_code, answer.text


@pytest.mark.parametrize("key", ["paper", "live", "paper_read_only"])
def test_an_api_key_is_refused_with_401_even_of_an_internal_organization(
    client: FlaskClient, internal: Organization, key: str
) -> None:
    assert _refused(client, {"x-api-key": internal.api_keys[key]})[0] == 401


def test_a_user_without_organization_is_refused_with_401(client: FlaskClient, identity: IdentityFixtures) -> None:
    assert _refused(client, bearer(identity.user_without_organization()))[0] == 401


def test_no_credential_and_a_bad_one_are_refused_with_401(client: FlaskClient) -> None:
    assert _refused(client, {})[0] == _refused(client, bearer("x.y.z"))[0] == 401


def test_a_client_credential_without_the_scope_is_refused_with_403(
    client: FlaskClient, identity: IdentityFixtures
) -> None:
    others = identity.service_account(["account:read", "account:write", "credential:write", "intent:read"])

    assert _refused(client, bearer(others.token))[0] == 403


def test_an_admin_of_another_organization_is_refused_with_403(client: FlaskClient, identity: IdentityFixtures) -> None:
    assert _refused(client, bearer(identity.organization().tokens["admin"]))[0] == 403


@pytest.mark.parametrize("role", ["member", "read_only"])
def test_whoever_is_no_admin_is_refused_with_403(client: FlaskClient, internal: Organization, role: str) -> None:
    assert _refused(client, bearer(internal.tokens[role]))[0] == 403


def test_an_internal_organization_named_in_a_header_helps_nobody(
    client: FlaskClient, identity: IdentityFixtures, internal: Organization
) -> None:
    assert _refused(client, bearer(identity.organization().tokens["admin"], internal.id))[0] == 403


def test_too_many_requests_are_refused_with_429(platform: Platform, identity: IdentityFixtures) -> None:
    strict = create_app(platform.web_environment("accounts", RATE_LIMIT_PER_MINUTE="2")).test_client()
    token = identity.service_account(["credential:read"]).token

    statuses = [strict.get(PATH, headers=bearer(token)).status_code for _ in range(2)]
    status, _ = _refused(strict, bearer(token))

    assert (statuses, status) == ([200, 200], 429)


def test_an_error_while_reading_the_queue_is_a_plain_500(
    platform: Platform, client: FlaskClient, operator: Caller
) -> None:
    with platform.admin() as connection:
        connection.execute(text("REVOKE SELECT ON accounts.outbox_head FROM tip_accounts_web"))
        try:
            status, body = _refused(client, operator.headers)
        finally:
            connection.execute(text("GRANT SELECT ON accounts.outbox_head TO tip_accounts_web"))

    assert (status, "outbox_head" in body) == (500, False)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_another_method_is_refused_in_plain_text(client: FlaskClient, operator: Caller, method: str) -> None:
    answer = operator.call(method, PATH)

    assert (answer.status_code, answer.mimetype) == (405, "text/plain")


# What it says


def test_an_empty_queue(operator: Caller, outbox: Outbox) -> None:
    assert operator.get(PATH).json == {
        "entries": [],
        **dict.fromkeys(TOTALS, 0),
        "oldest_claim_at": None,
        "oldest_failed_at": None,
        "oldest_pending_at": None,
    }


def _in_every_state(outbox: Outbox) -> None:
    """Two rows of each type and status, each type with a fault of its own before."""
    for event_type in model.EVENT_TYPES:
        with outbox.engine.begin() as tx:
            for _ in range(6):
                outbox.append(tx, Event(event_type, {"account_id": "a-canary", "organization_id": "o-canary"}))
        with outbox.engine.begin() as tx:
            claim = outbox.claim(tx)
            done, lost = [row.id for row in claim.rows[:2]], [row.id for row in claim.rows[2:4]]
            outbox.complete(tx, claim, done)
            for row_id in lost:
                tx.execute(text("UPDATE accounts.outbox SET attempts = 3 WHERE id = :id"), {"id": row_id})
                outbox.retry(tx, claim, row_id, "error-canary")
        with outbox.engine.begin() as tx:
            for _ in range(2):
                outbox.append(tx, Event(event_type, {}))
            tx.execute(
                text("UPDATE accounts.outbox SET available_at = now() + interval '1 h' WHERE status = 'pending'")
            )


def test_one_entry_for_each_status_and_type_that_has_rows_and_totals_made_of_them(
    operator: Caller, outbox: Outbox
) -> None:
    _in_every_state(outbox)

    report = operator.get(PATH).json

    pairs = [(entry["status"], entry["event_type"]) for entry in report["entries"]]
    assert sorted(pairs) == sorted((status, kind) for status in TOTALS for kind in model.EVENT_TYPES)
    assert {entry["count"] for entry in report["entries"]} == {2}
    assert {total: report[total] for total in TOTALS} == dict.fromkeys(TOTALS, 12)
    assert report == _expected(outbox)


def test_the_report_holds_the_specified_fields_and_nothing_else(operator: Caller, outbox: Outbox) -> None:
    _in_every_state(outbox)

    answer = operator.get(PATH)

    assert set(answer.json) == {"entries", *TOTALS, "oldest_claim_at", "oldest_failed_at", "oldest_pending_at"}
    for entry in answer.json["entries"]:
        assert set(entry) == {
            "status",
            "event_type",
            "count",
            "oldest_created_at",
            "max_attempts",
            "oldest_claimed_at",
        }
        assert (entry["oldest_claimed_at"] is None) == (entry["status"] != "processing")
    assert "canary" not in answer.text


def _expected(outbox: Outbox) -> dict[str, Any]:
    """The report counted the slow way, straight from the rows."""
    with outbox.engine.connect() as tx:
        rows = [dict(row._mapping) for row in tx.execute(NAIVE)]

    def told(moment: Any) -> str | None:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment else None

    def oldest(status: str, field: str) -> str | None:
        return told(min((row[field] for row in rows if row["status"] == status), default=None))

    return {
        "entries": [{**row, **{k: told(row[k]) for k in ("oldest_created_at", "oldest_claimed_at")}} for row in rows],
        **{status: sum(row["count"] for row in rows if row["status"] == status) for status in TOTALS},
        "oldest_claim_at": oldest("processing", "oldest_claimed_at"),
        "oldest_failed_at": oldest("failed", "oldest_created_at"),
        "oldest_pending_at": oldest("pending", "oldest_created_at"),
    }


steps = st.lists(
    st.sampled_from(["append", "claim", "complete", "retry", "release", "bury", "prune", "redrive", "roll_up"]),
    min_size=1,
    max_size=30,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, data=st.data())
def test_whatever_happens_to_the_queue_the_report_is_what_the_rows_say(
    operator: Caller, outbox: Outbox, monkeypatch: pytest.MonkeyPatch, steps: list[str], data: st.DataObject
) -> None:
    monkeypatch.setattr("chassis.outbox.store.BACKLOG", 1)  # every backlog is worth counting once, a little at a time
    monkeypatch.setattr("chassis.outbox.store.COUNTED_AT_ONCE", 2)
    claims: list[Any] = []
    for step in steps:
        with outbox.engine.begin() as tx:
            _do(outbox, tx, step, claims, data)

    assert operator.get(PATH).json == _expected(outbox)


def _do(outbox: Outbox, tx: Connection, step: str, claims: list[Any], data: st.DataObject) -> None:
    if step == "append":
        for event_type in data.draw(st.lists(st.sampled_from(model.EVENT_TYPES), min_size=1, max_size=4)):
            outbox.append(tx, Event(event_type, {}, ordering_key=data.draw(st.sampled_from([None, "k"]))))
    elif step == "claim":
        tx.execute(text("UPDATE accounts.outbox SET available_at = now() - interval '1 s'"))
        claims.append(outbox.claim(tx, batch=data.draw(st.integers(1, 5))))
    elif step == "bury":
        tx.execute(text("UPDATE accounts.outbox SET claimed_at = claimed_at - interval '6 s'"))
        outbox.fail_abandoned(tx)
    elif step == "prune":
        outbox.prune(tx, days=0, batch=data.draw(st.integers(1, 5)))
    elif step == "roll_up":
        outbox.roll_up(tx)
    elif step == "redrive":
        for row in outbox.failed(tx):
            outbox.redrive(tx, row["id"])
    elif claims:
        _settle(outbox, tx, step, claims[-1])


def _settle(outbox: Outbox, tx: Connection, step: str, claim: Any) -> None:
    ids = [row.id for row in claim.rows]
    if step == "complete":
        outbox.complete(tx, claim, ids[::2])
    elif step == "release":
        outbox.release(tx, claim, ids, delay=0, error="down")
    else:
        for row_id in ids:
            outbox.retry(tx, claim, row_id, "fault")


# How fast


def _fill(platform: Platform, count: int, status: str) -> None:
    statement = text("""
        INSERT INTO accounts.outbox (event_id, event_type, ordering_key, payload, status)
        SELECT gen_random_uuid(), (CAST(:types AS text[]))[1 + i % 6], i::text, '{}', :status
        FROM generate_series(1, :count) i
    """)
    with platform.admin() as connection:
        connection.execute(statement, {"types": list(model.EVENT_TYPES), "count": count, "status": status})
        connection.execute(text("ANALYZE accounts.outbox"))  # as autovacuum would, sooner or later


def _uncounted(outbox: Outbox) -> int:
    """Waiting rows that every report counts anew."""
    with outbox.engine.connect() as tx:
        return int(tx.execute(UNCOUNTED).scalar_one())


def _roll_up(outbox: Outbox) -> None:
    """As a relay does once a second."""
    with outbox.engine.begin() as tx:
        outbox.roll_up(tx)


def _count_all(outbox: Outbox) -> None:
    """As often as it takes: a transaction of somebody else, an autovacuum's say, puts the counting off."""
    for _ in range(100):
        _roll_up(outbox)
        if not _uncounted(outbox):
            return
        time.sleep(0.1)
    raise AssertionError("it was never counted")


def test_a_report_waits_for_nobody(platform: Platform, operator: Caller, outbox: Outbox) -> None:
    _fill(platform, BACKLOG + 1, "pending")
    with outbox.engine.begin() as tx:
        tx.execute(text("SELECT 1 FROM accounts.outbox_head FOR UPDATE"))  # somebody is completing, for long
        answer = operator.get(PATH)

    assert (answer.status_code, answer.json["pending"]) == (200, BACKLOG + 1)


def test_without_a_relay_a_backlog_is_counted_by_the_reports_themselves_and_only_once(
    platform: Platform, operator: Caller, outbox: Outbox
) -> None:
    _fill(platform, BACKLOG + 1, "pending")
    uncounted = [_uncounted(outbox)]
    reports = [operator.get(PATH).json["pending"]]
    for _ in range(100):  # more than once only if somebody else's transaction put the counting off
        reports.append(operator.get(PATH).json["pending"])
        if not _uncounted(outbox):
            break
        time.sleep(0.1)
    uncounted.append(_uncounted(outbox))

    assert (set(reports), uncounted) == ({BACKLOG + 1}, [BACKLOG + 1, 0])
    assert operator.get(PATH).json == _expected(outbox)


def test_a_backlog_is_counted_once_and_then_counted_off(platform: Platform, operator: Caller, outbox: Outbox) -> None:
    _fill(platform, 2 * BACKLOG, "pending")
    _count_all(outbox)
    first = operator.get(PATH).json

    with outbox.engine.begin() as tx:
        claim = outbox.claim(tx)
    with outbox.engine.begin() as tx:
        outbox.release(tx, claim, [row.id for row in claim.rows[:10]], delay=0, error="down")
        outbox.append(tx, Event("account.created", {}))
        counted = tx.execute(text("SELECT sum(count) FROM accounts.outbox_backlog")).scalar_one()

    second = operator.get(PATH).json
    assert (first["pending"], counted) == (2 * BACKLOG, 2 * BACKLOG - 100)
    assert (second["pending"], second["processing"]) == (2 * BACKLOG - 89, 90)
    assert second == _expected(outbox)


def test_a_transaction_still_running_while_a_backlog_is_counted_is_neither_lost_nor_counted_twice(
    platform: Platform, operator: Caller, outbox: Outbox
) -> None:
    with outbox.engine.connect() as slow:
        outbox.append(slow, Event("account.created", {}))
        _fill(platform, BACKLOG, "pending")
        _roll_up(outbox)
        before = operator.get(PATH).json["pending"]
        slow.commit()

    counts = []
    for _ in range(3):
        counts.append(operator.get(PATH).json["pending"])
        _roll_up(outbox)

    assert (before, counts) == (BACKLOG, [BACKLOG + 1] * 3)


def test_the_report_does_not_slow_down_with_a_backlog(platform: Platform, operator: Caller, outbox: Outbox) -> None:
    _fill(platform, 100_000, "pending")
    _count_all(outbox)

    with outbox.engine.connect() as tx:  # turn by turn, so that a busy machine slows down both
        pairs = [(_timed(lambda: tx.execute(NAIVE).all()), _timed(lambda: outbox.health(tx))) for _ in range(8)]

    naive, report = (min(times) for times in zip(*pairs, strict=True))
    assert report < naive / 3


def _timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
