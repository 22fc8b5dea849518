"""The examples run, on a whole platform."""

import importlib.util
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sdk_platform import Platform

import tip_client as tip
from tip_testing.waiting import eventually

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def own(platform: Platform, own_account: str) -> Any:
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        yield client


def test_the_first_order(own: tip.Client, symbol: str) -> None:
    assert example("first_order").main(own, symbol).filled_quantity == 1


@pytest.mark.parametrize(("price", "kind"), [(103, "Market"), (90, "Stop")], ids=["target", "stop"])
def test_a_bot_sells_at_its_target_or_stop(
    platform: Platform, own: tip.Client, symbol: str, price: int, kind: str
) -> None:
    platform.set_price(symbol, 100)
    sold: list[tip.Order] = []
    bot = threading.Thread(target=lambda: sold.append(example("bot").main(own, symbol, 2)))
    bot.start()
    eventually(lambda: [order for order in own.orders(symbol=symbol) if order.status == "ACCEPTED"])
    platform.set_price(symbol, price)
    bot.join()

    assert (sold[0].spec.kind, sold[0].status, sold[0].filled_quantity) == (kind, "FILLED", 2)
    assert list(own.orders(status="open")) == []


def test_the_bot_is_forty_lines() -> None:
    assert len((EXAMPLES / "bot.py").read_text().splitlines()) <= 40


def test_orders_are_copied_once_also_after_a_restart(
    platform: Platform, own: tip.Client, symbol: str, tmp_path: Path
) -> None:
    with platform.admin() as admin:
        other = admin.accounts.create("copies", broker="paper", environment="paper").id
    target, store = own.for_account(other), tmp_path / "position"
    copies = example("copy_orders").copies
    made = [own.buy(symbol, quantity) for quantity in (1, 2)]

    first = copies(own, target, store)
    assert [next(first).client_id for _ in made] == [order.intent_id for order in made]
    first.close()
    own.sell("SIM.OPEN", 3, limit="900")
    second = copies(own, target, store)
    while next(second).symbol != "SIM.OPEN":
        pass
    second.close()

    assert [order.spec.quantity for order in target.orders()] == [1, 2, 3]


def test_a_watchdog_halts_on_loss(platform: Platform, own: tip.Client, symbol: str) -> None:
    with platform.admin() as admin:
        key = admin.keys.create("watchdog", environment="paper", permissions=["control:edit", "intent:read"])
    platform.set_price(symbol, 100)
    own.buy(symbol, 10).wait("FILLED", timeout=60)
    resting = own.buy("SIM.OPEN", 1, limit="1.00").wait("ACCEPTED", timeout=60)
    found: list[Decimal] = []
    with tip.Client(settings=platform.settings(account=own.account_id, key=key.key)) as guard:
        watch = threading.Thread(target=lambda: found.append(example("watchdog").main(guard, Decimal(100), 0.2)))
        watch.start()
        eventually(lambda: own.balances().equity)
        watch.join(2)
        platform.set_price(symbol, 80)
        watch.join()

    assert found[0] > 100 and resting.wait(timeout=60).status == "CANCELED"
    with pytest.raises(tip.ControlRejected):
        own.buy(symbol, 1)


def test_positions_are_rows_for_a_notebook(own: tip.Client, symbol: str) -> None:
    own.buy(symbol, 2).wait("FILLED", timeout=60)
    positions = example("positions")

    [row] = eventually(lambda: [row for row in positions.rows(own) if row["market_value"]])

    assert (row["symbol"], row["quantity"], row["share"]) == (symbol, 2, 1)
    positions.main(own)
