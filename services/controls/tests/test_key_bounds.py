"""A preview knows the bounds of the API key that requests it, and what is spent of its budget."""

from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text

from identity.model import Bounds
from tip_testing.commands import create


@pytest.fixture
def account(setting: Any, organization: Any) -> Any:
    return setting.account(organization)


def preview(setting: Any, account: Any, key: str, quantity: str, symbol: str = "AAPL") -> Any:
    order = create(symbol, Limit={"quantity": quantity, "limit_price": "100"})
    path = f"/v1/controls/accounts/{account}/preview"
    answer = setting.client.post(path, json=order, headers={"x-api-key": key})
    assert answer.status_code == 200, answer.text
    return answer.json


def test_symbols_and_budget_are_among_the_checks(setting: Any, organization: Any, account: Any) -> None:
    bounds = Bounds(symbols=("AAPL",), max_notional_per_day=Decimal(1000))
    key = setting.identity.key(organization.id, "paper", bounds=bounds)

    allowed, dear = (preview(setting, account, key, quantity) for quantity in ("10", "11"))
    other = preview(setting, account, key, "1", "MSFT")

    names = [check["control"] for check in allowed["checks"]]
    assert names[-2:] == ["api_key.symbols", "api_key.max_notional_per_day"]
    assert allowed["decision"] == "ALLOWED"
    assert [reason["code"] for reason in dear["reasons"]] == ["KEY_NOTIONAL_ABOVE_LIMIT"]
    assert [reason["code"] for reason in other["reasons"]] == ["KEY_SYMBOL_NOT_ALLOWED"]


def test_what_is_spent_counts_until_the_day_ends(setting: Any, organization: Any, account: Any) -> None:
    key = setting.identity.key(organization.id, "paper", bounds=Bounds(max_notional_per_day=Decimal(1000)))
    spend = text("""
        INSERT INTO intents.key_budget (key_id, organization_id, day_ends_at, spent)
        SELECT id, organization_id, date_trunc('day', now(), 'UTC') + interval '1 day', 600 FROM identity.api_key
        WHERE prefix = left(:key, length(prefix))
    """)
    with setting.platform.admin() as admin:
        admin.execute(spend, {"key": key})
        assert preview(setting, account, key, "5")["decision"] == "REFUSED"
        admin.execute(text("UPDATE intents.key_budget SET day_ends_at = date_trunc('day', now(), 'UTC')"))

    assert preview(setting, account, key, "5")["decision"] == "ALLOWED"
