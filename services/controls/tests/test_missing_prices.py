"""A preview that lacks a price requests it and waits for it, for its own organization and where a submit would."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from chassis import polling, tenancy
from controls.app import create_app
from tip_testing.commands import create
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

from .conftest import Setting

WAIT = 0.4


@pytest.fixture(scope="module")
def setting(platform: Platform, identity: IdentityFixtures) -> Iterator[Setting]:
    app = create_app(platform.web_environment("controls", QUOTE_WAIT_SECONDS=str(WAIT)))
    yield Setting(platform, identity, app.test_client())
    app.extensions["deps"].engine.dispose()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited for prices, each time."""
    found: list[float] = []

    def asleep(seconds: float) -> None:
        found.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(polling, "time", SimpleNamespace(sleep=asleep, monotonic=time.monotonic))
    return found


def preview(controls: Any, **more: Any) -> list[str]:
    answer = controls.call("POST", "/preview", create() | more)
    assert answer.status_code == 200, answer.json
    return [reason["code"] for reason in answer.json["reasons"]]


def prices(setting: Any, controls: Any) -> list[dict[str, Any]]:
    with setting.platform.admin() as admin:
        found = admin.execute(text("SELECT * FROM intents.quote WHERE account_id = :id"), {"id": controls.account_id})
        return [row._asdict() for row in found]


def test_a_price_that_comes_meanwhile_decides(
    setting: Any, controls: Any, organization: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    controls.call("PUT", "/limits", {"max_notional": "1000"})

    def asleep(_seconds: float) -> None:
        with setting.platform.admin() as admin:
            admin.execute(
                text("UPDATE intents.quote SET last = 51, traded_at = now(), read_at = now() WHERE account_id = :id"),
                {"id": controls.account_id},
            )

    monkeypatch.setattr(polling, "time", SimpleNamespace(sleep=asleep, monotonic=time.monotonic))

    assert preview(controls) == []
    [row] = prices(setting, controls)
    assert (row["symbol"], row["organization_id"]) == ("AAPL", organization.id)


def test_without_a_price_in_time_it_is_refused_and_requested(setting: Any, controls: Any, pauses: list[float]) -> None:
    controls.call("PUT", "/limits", {"max_notional": "1000"})

    assert preview(controls) == ["REFERENCE_PRICE_UNKNOWN"]
    assert 0 < sum(pauses) <= WAIT
    assert [row["requested_at"] is not None for row in prices(setting, controls)] == [True]


@pytest.mark.parametrize(
    "more",
    [{"facts": {"reference_price": None}}, {"at": "2026-07-01T12:00:00Z"}],
    ids=["price given as unknown", "another moment"],
)
def test_what_the_caller_decides_himself_is_not_waited_for(
    setting: Any, controls: Any, pauses: list[float], more: dict[str, Any]
) -> None:
    controls.call("PUT", "/limits", {"max_notional": "1000"})

    assert preview(controls, **more) == ["REFERENCE_PRICE_UNKNOWN"]
    assert pauses == prices(setting, controls) == []


def test_what_is_refused_for_another_reason_as_well_does_not_wait(
    setting: Any, controls: Any, pauses: list[float]
) -> None:
    controls.call("PUT", "/limits", {"max_notional": "1000", "max_quantity": "1"})

    assert sorted(preview(controls)) == ["QUANTITY_ABOVE_LIMIT", "REFERENCE_PRICE_UNKNOWN"]
    assert pauses == prices(setting, controls) == []


@pytest.mark.parametrize("whose", ["nobody", "a stranger"])
def test_prices_are_requested_for_the_organization_that_is_served_alone(
    setting: Any, controls: Any, whose: str
) -> None:
    served = [setting.identity.organization().id] if whose == "a stranger" else []
    engine = setting.client.application.extensions["deps"].engine

    with tenancy.serving(served), engine.begin() as tx:
        request = text("SELECT * FROM intents_api.request_prices(:id, ARRAY['AAPL'])")
        assert tx.execute(request, {"id": controls.account_id}).all() == []

    assert prices(setting, controls) == []


def test_previews_take_half_of_the_prices_of_an_account_and_leave_the_rest_to_orders(
    setting: Any, controls: Any, pauses: list[float]
) -> None:
    controls.call("PUT", "/limits", {"max_notional": "1000"})
    keep = text(
        "INSERT INTO intents.quote (account_id, symbol, requested_at) "
        "SELECT :id, 'S' || number, now() FROM generate_series(1, 500) number"
    )
    with setting.platform.admin() as admin:
        admin.execute(keep, {"id": controls.account_id})

    assert preview(controls) == ["REFERENCE_PRICE_UNKNOWN"]
    assert pauses == []
    assert "AAPL" not in {row["symbol"] for row in prices(setting, controls)}
    assert preview(controls, **create("S1")) == ["REFERENCE_PRICE_UNKNOWN"]
    assert pauses, "a price that the account has is read again"
