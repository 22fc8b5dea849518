"""What the judge reads of the brokers beside the paper broker: their own records, order by order."""

import json
import sys
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fault_brokers import exchange_orders, fix_orders
from fault_records import Order

from tip_testing.loopback_exchange.__main__ import orders
from tip_testing.loopback_exchange.book import Book

NEW = {35: "D", 1: "ACC0", 11: "tip-a", 38: "10", 40: "2", 44: "20", 52: "20261117-08:00:00.000", 54: "1", 55: "HALF"}
REPLACE = {**NEW, 35: "G", 11: "tip-b", 38: "12", 41: "tip-a"}
CANCEL = {**NEW, 35: "F", 11: "tip-c", 41: "tip-b"}


def fix_journal(folder: Path, *messages: dict[int, str]) -> list[Order]:
    file = folder / "journal"
    file.write_text("".join("\x01".join(f"{tag}={value}" for tag, value in one.items()) + "\n" for one in messages))
    return [Order(row) for row in fix_orders(file)]


def test_an_order_and_its_replacement_share_what_was_requested(tmp_path: Path) -> None:
    first, second = fix_journal(tmp_path, NEW, REPLACE)

    assert (first.status, first.filled, first.remaining) == ("replaced", Decimal(5), Decimal(5))
    assert (second.status, second.filled, second.remaining) == ("partially_filled", Decimal(0), Decimal(7))
    assert not first.is_open and second.is_open
    assert first.sequence < second.sequence


def test_an_order_that_was_sent_twice_is_one_that_was_posted_twice(tmp_path: Path) -> None:
    [order] = fix_journal(tmp_path, NEW, {**NEW, 97: "Y"})

    assert (order.posts, order.filled) == (2, Decimal(5))


def test_a_canceled_order_is_not_open(tmp_path: Path) -> None:
    _, second = fix_journal(tmp_path, NEW, REPLACE, CANCEL)

    assert not second.is_open


def test_two_orders_of_one_client_id_at_the_exchange_are_two(tmp_path: Path) -> None:
    book = Book()
    for _ in range(2):
        terms = {"quantity": Decimal(2), "limit_price": None, "stop_price": None, "time_in_force": "GTC"}
        book.create("tip-a", "FILL", "BUY", "MARKET", **terms)
    file = tmp_path / "exchange.ndjson"
    file.write_text("".join(json.dumps(order) + "\n" for order in orders([book])))
    found = [Order(row) for row in exchange_orders(file)]

    assert [(order.client_order_id, order.filled, order.is_open) for order in found] == [
        ("tip-a", Decimal(2), False)
    ] * 2
    assert found[0].order_id != found[1].order_id
