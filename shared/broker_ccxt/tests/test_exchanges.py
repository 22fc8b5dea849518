"""What is known of exchanges is what the library says, and what may be sent again is what an exchange lets us find."""

import subprocess
import sys
from pathlib import Path

import ccxt
import pytest

from tip_broker_ccxt import brokers
from tip_broker_ccxt.exchanges import RECOVERY, TABLE, read_exchanges
from tip_broker_ccxt.left_out import document
from tip_broker_ccxt.table import table
from tip_brokers import ClientIds


def test_the_table_is_the_librarys() -> None:
    assert TABLE.read_text() == table(), "run: python -m tip_broker_ccxt.table > .../exchanges.json"


def test_of_every_exchange_that_is_left_out_the_reason_is_written_down() -> None:
    written = (Path(__file__).parents[1] / "LEFT-OUT.md").read_text()
    offered = {exchange.id for exchange in read_exchanges()}

    assert written == document(), "run: python -m tip_broker_ccxt.left_out > shared/broker_ccxt/LEFT-OUT.md"
    assert all((f"(`{name}`)" in written) != (name in offered) for name in ccxt.exchanges)


def test_describing_exchanges_does_not_load_the_library() -> None:
    probe = "import sys, tip_brokers; tip_brokers.find('ccxt:kraken'); print('ccxt' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "False"


def test_an_order_may_be_sent_again_only_where_it_can_be_found_and_its_request_expires() -> None:
    offered = {exchange.id: exchange.recovery for exchange in read_exchanges()}

    assert RECOVERY.keys() <= offered.keys()
    for name, recovery in offered.items():
        is_found_again = recovery.query is not None and recovery.expiry is not None
        assert recovery.client_ids is (ClientIds.ECHO if is_found_again else ClientIds.NONE), name
        assert is_found_again == (name in RECOVERY)


@pytest.mark.parametrize("name", ["bybit", "coinbase", "kucoin", "okx"])
def test_an_exchange_that_nothing_proves_takes_limit_orders_alone(name: str) -> None:
    described = {broker.name: broker for broker in brokers()}[f"ccxt:{name}"]

    assert described.capabilities.kinds == {"Limit": ("GTC",)}
    assert {"apiKey", "secret"} <= {part.name for part in described.credential}


def test_every_exchange_is_a_broker_of_that_name() -> None:
    described = {broker.name: broker for broker in brokers()}

    assert {"ccxt:binance", "ccxt:kraken"} <= described.keys()
    assert all("live" in broker.environments and broker.needs_credential for broker in described.values())
