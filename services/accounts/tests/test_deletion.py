"""An account with open orders is not deleted; with cancel_open it is, once the last of them has ended."""

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import event, text

from accounts import usecases
from tip_testing.accounts_caller import Caller, column, events
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running
from tip_testing.waiting import eventually


@pytest.fixture
def intent(platform: Platform, account_id: str) -> Callable[..., str]:
    """An intent of the account, written as intents would."""

    def write(status: str = "ACCEPTED") -> str:
        intent_id = str(uuid4())
        with platform.admin() as admin:
            admin.execute(
                text(
                    "INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, "
                    "route_strategy, spec, quantity, status, created_at, updated_at, next_attempt_at) "
                    "SELECT id, :intent_id, organization_id, environment, 'AAPL', 'BUY', 'AUTO', '{}', 1, :status, "
                    "now(), now(), now() FROM accounts.account WHERE id = :account_id"
                ),
                {"intent_id": intent_id, "account_id": account_id, "status": status},
            )
        return intent_id

    return write


def end_intents(platform: Platform, account_id: str) -> None:
    with platform.admin() as admin:
        admin.execute(text("UPDATE intents.intent SET status = 'CANCELED' WHERE account_id = :id"), {"id": account_id})


def delete(admin: Caller, account_id: str, query: str = "", **more: Any) -> Any:
    return admin.call("DELETE", f"/v1/accounts/{account_id}{query}", **more)


def seen_by_intents(deps: usecases.Deps, platform: Platform, account_id: str) -> list[Any]:
    with platform.admin() as admin:
        found = admin.execute(
            text("SELECT disabled, disabled_reason FROM accounts_api.account WHERE id = :id"), {"id": account_id}
        )
        return [tuple(row) for row in found]


@pytest.mark.parametrize("status", ["PENDING", "SUBMITTED", "ACCEPTED", "PARTIALLY_FILLED", "PENDING_CANCEL"])
def test_an_account_with_open_intents_is_not_deleted(
    admin: Caller, deps: usecases.Deps, account_id: str, intent: Callable[..., str], status: str
) -> None:
    intent(status)

    answer = delete(admin, account_id)

    assert (answer.status_code, answer.json["code"]) == (409, "open_intents")
    account = admin.get(f"/v1/accounts/{account_id}").json
    assert (account["closing"], account["version"]) == (False, 1)
    assert [row.event_type for row in events(deps, account_id)] == ["account.created"]


def test_a_refused_deletion_closes_nothing_even_for_a_moment(
    admin: Caller, platform: Platform, account_id: str, intent: Callable[..., str]
) -> None:
    """What waits to be sent would be refused in that moment."""

    def written_by() -> Any:
        with platform.admin() as connection:
            row = text("SELECT CAST(xmin AS text) FROM accounts.account WHERE id = :id")
            return connection.execute(row, {"id": account_id}).scalar_one()

    intent("PENDING")
    before = written_by()

    assert delete(admin, account_id).status_code == 409
    assert written_by() == before


def test_an_account_whose_intents_have_ended_is_deleted(
    admin: Caller, account_id: str, intent: Callable[..., str]
) -> None:
    for status in ("FILLED", "CANCELED", "REJECTED", "DENIED", "EXPIRED", "FAILED"):
        intent(status)

    assert delete(admin, account_id).status_code == 204
    assert admin.get(f"/v1/accounts/{account_id}").status_code == 404


@pytest.mark.parametrize(
    ("order", "status"),
    [("'WORKING', 'b-1', now()", 409), ("'MISSING', NULL, now()", 409),
     ("'MISSING', NULL, now() - interval '25 hours'", 204), ("'CANCELED', 'b-1', now()", 204)],
)  # fmt: skip
def test_an_order_that_may_be_at_the_broker_keeps_the_account(
    admin: Caller, platform: Platform, account_id: str, order: str, status: int
) -> None:
    with platform.admin() as connection:
        connection.execute(
            text(
                "INSERT INTO intents.broker_order (account_id, client_order_id, intent_id, status, broker_order_id, "
                f"updated_at) VALUES (:account_id, 'c-1', gen_random_uuid(), {order})"
            ),
            {"account_id": account_id},
        )

    assert delete(admin, account_id).status_code == status


def test_with_cancel_open_it_refuses_intents_and_is_deleted_when_the_last_has_ended(
    admin: Caller, deps: usecases.Deps, platform: Platform, account_id: str, intent: Callable[..., str]
) -> None:
    intent()
    admin.credential(account_id)

    answer = delete(admin, account_id, "?cancel_open=true")

    assert (answer.status_code, answer.json["closing"]) == (202, True)
    event = events(deps, account_id)[-1]
    assert answer.headers["Location"] == f"/v1/accounts/{account_id}/bulk-operations/{event.event_id}"
    assert (event.event_type, event.payload["cancel_open"], event.payload["actor"]["type"]) == (
        "account.updated",
        True,
        "user",
    )
    assert seen_by_intents(deps, platform, account_id) == [(True, "It is being deleted.")]
    enabled = admin.post(f"/v1/accounts/{account_id}/enable")
    assert (enabled.status_code, enabled.json["code"]) == (409, "account_closing")
    assert usecases.finish_deletions(deps.outbox) == 0

    end_intents(platform, account_id)
    assert usecases.finish_deletions(deps.outbox) == 1
    assert admin.get(f"/v1/accounts/{account_id}").status_code == 404
    assert [row.event_type for row in events(deps, account_id)][-2:] == ["credential.deleted", "account.deleted"]
    revoked = "SELECT status FROM accounts.credential WHERE account_id = :id"
    assert column(deps, revoked, id=UUID(account_id)) == ["revoked"]


def test_a_second_deletion_while_the_first_is_under_way_is_the_same_one(
    admin: Caller, deps: usecases.Deps, account_id: str, intent: Callable[..., str]
) -> None:
    intent()
    answers = [delete(admin, account_id, query) for query in ("?cancel_open=true", "?cancel_open=true", "")]

    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert [row.event_type for row in events(deps, account_id)] == ["account.created", "account.updated"]


@pytest.fixture
def opened_again(client: FlaskClient, platform: Platform, account_id: str) -> Iterator[list[int]]:
    """Between the two transactions of a deletion another one, which was refused, opens the account again, once."""
    engine, opened = client.application.extensions["deps"].engine, list[int]()

    def open_again(*_: object) -> None:
        if not opened:
            with platform.admin() as admin:
                reopen = "UPDATE accounts.account SET closing_at = NULL WHERE id = :id AND closing_at IS NOT NULL"
                opened.extend([1] * admin.execute(text(reopen), {"id": account_id}).rowcount)

    event.listen(engine, "checkin", open_again)
    yield opened
    event.remove(engine, "checkin", open_again)


def test_a_deletion_that_is_refused_meanwhile_does_not_undo_one_that_cancels(
    admin: Caller, platform: Platform, account_id: str, intent: Callable[..., str], opened_again: list[int],
    deps: usecases.Deps,
) -> None:  # fmt: skip
    intent()

    answer = delete(admin, account_id, "?cancel_open=true")

    assert opened_again and (answer.status_code, answer.json["closing"]) == (202, True)
    assert seen_by_intents(deps, platform, account_id) == [(True, "It is being deleted.")]
    end_intents(platform, account_id)
    assert usecases.finish_deletions(deps.outbox) == 1


def test_cancel_open_without_an_open_intent_deletes_at_once(admin: Caller, account_id: str) -> None:
    assert delete(admin, account_id, "?cancel_open=true").status_code == 204


@pytest.mark.parametrize("query", ["?cancel_open=yes", "?cancel_open=", "?cancel_open=true&cancel_open=true"])
def test_cancel_open_is_true_or_false(admin: Caller, account_id: str, query: str) -> None:
    assert delete(admin, account_id, query).status_code == 400
    assert admin.get(f"/v1/accounts/{account_id}").json["closing"] is False


def test_another_version_closes_nothing(admin: Caller, account_id: str, intent: Callable[..., str]) -> None:
    intent()

    answer = delete(admin, account_id, "?cancel_open=true", headers={"If-Match": '"9"'})

    assert answer.status_code == 412
    assert admin.get(f"/v1/accounts/{account_id}").json["closing"] is False


@pytest.mark.parametrize("is_open", [True, False])
def test_an_account_that_a_crash_left_closed_is_deleted_or_opened_again(
    admin: Caller, deps: usecases.Deps, platform: Platform, account_id: str, intent: Callable[..., str], is_open: bool
) -> None:
    if is_open:
        intent()
    with platform.admin() as connection:
        closed = "UPDATE accounts.account SET closing_at = now() - interval '31 seconds' WHERE id = :id"
        connection.execute(text(closed), {"id": account_id})

    assert usecases.finish_deletions(deps.outbox, Event()) == 1

    assert admin.get(f"/v1/accounts/{account_id}").status_code == (200 if is_open else 404)
    if is_open:
        assert admin.get(f"/v1/accounts/{account_id}").json["closing"] is False
        assert seen_by_intents(deps, platform, account_id) == [(False, None)]


def test_the_consumer_finishes_deletions(
    admin: Caller, platform: Platform, account_id: str, intent: Callable[..., str]
) -> None:
    intent()
    delete(admin, account_id, "?cancel_open=true")
    end_intents(platform, account_id)

    with running("-m", "accounts.worker", "consumer", environment=platform.environment("accounts")):
        eventually(lambda: admin.get(f"/v1/accounts/{account_id}").status_code == 404, 60)


def test_a_deletion_with_a_parameter_that_does_not_exist_deletes_nothing(admin: Caller) -> None:
    account = admin.account()

    answer = admin.call("DELETE", f"/v1/accounts/{account['id']}?dry_run=true")

    assert (answer.status_code, answer.json["code"]) == (400, "unknown_query")
    assert admin.get(f"/v1/accounts/{account['id']}").json == account
