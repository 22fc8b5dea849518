"""JSON out, in Alpaca's shapes: numbers as text, times in RFC 3339."""

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from paper_broker.model import Account, Event, Order, Position, Quote
from paper_broker.model.prices import identity
from paper_broker.store import Row

Json = dict[str, Any]
CENT = Decimal("0.01")


def number(value: Decimal | None) -> str | None:
    return None if value is None else format(value.normalize(), "f")


def money(value: Decimal) -> str:
    return str(value.quantize(CENT, ROUND_HALF_UP))


def time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="microseconds")[:-6] + "Z"


@lru_cache(4096)
def asset_id(symbol: str) -> str:
    return identity("asset", symbol)


def asset_class(symbol: str) -> str:
    return "crypto" if "/" in symbol else "us_equity"


def nested(parent: Order, legs: list[Order]) -> Json:
    return order(parent) | {"legs": [order(leg) for leg in legs] or None}


def order(order: Order) -> Json:
    return {
        "id": order.id,
        "client_order_id": order.client_order_id,
        "created_at": time(order.created_at),
        "updated_at": time(order.updated_at),
        "submitted_at": time(order.created_at),
        "filled_at": time(order.filled_at),
        "expired_at": time(order.expired_at),
        "expires_at": time(order.expires_at),
        "canceled_at": time(order.canceled_at),
        "failed_at": time(order.failed_at),
        "replaced_at": time(order.replaced_at),
        "replaced_by": order.replaced_by,
        "replaces": order.replaces,
        "asset_id": asset_id(order.symbol),
        "symbol": order.symbol,
        "asset_class": asset_class(order.symbol),
        "notional": number(order.notional),
        "qty": number(order.qty) if order.notional is None else None,
        "filled_qty": number(order.filled_qty),
        "filled_avg_price": number(order.filled_avg_price),
        "order_class": "oco" if order.oco_id else "simple",
        "order_type": order.kind,
        "type": order.kind,
        "side": order.side,
        "time_in_force": order.time_in_force,
        "limit_price": number(order.limit_price),
        "stop_price": number(order.stop_price),
        "status": order.status,
        "extended_hours": order.extended_hours,
        "legs": None,
        "trail_percent": number(order.trail_percent),
        "trail_price": number(order.trail_price),
        "hwm": number(order.hwm),
        "source": None,
    }


def trade_update(event: Event) -> Json:
    data: Json = {
        "event": event.kind,
        "event_id": event.id,
        "at": time(event.at),
        "timestamp": time(event.at),
        "order": order(event.order),
    }
    if event.execution_id:
        data["execution_id"] = event.execution_id
        data["qty"], data["price"] = number(event.qty), number(event.price)
        data["position_qty"] = number(event.position_qty)
    return {"stream": "trade_updates", "data": data}


def account(account: Account, quotes: dict[str, Quote]) -> Json:
    values = [item.qty * quotes[item.symbol].middle for item in account.positions.values() if item.qty]
    long, short = sum((v for v in values if v > 0), Decimal()), sum((v for v in values if v < 0), Decimal())
    equity = money(account.cash + long + short)
    return {
        "id": account.id,
        "account_number": "PB" + account.id.replace("-", "").upper()[:10],
        "status": "ACTIVE",
        "crypto_status": "ACTIVE",
        "currency": "USD",
        "cash": number(account.cash),
        "buying_power": number(account.buying_power),
        "regt_buying_power": number(account.buying_power),
        "non_marginable_buying_power": number(account.buying_power),
        "equity": equity,
        "last_equity": equity,
        "portfolio_value": equity,
        "long_market_value": money(long),
        "short_market_value": money(short),
        "initial_margin": "0",
        "maintenance_margin": "0",
        "multiplier": "1",
        "shorting_enabled": True,
        "pattern_day_trader": False,
        "trading_blocked": False,
        "transfers_blocked": False,
        "account_blocked": False,
        "trade_suspended_by_user": False,
        "accrued_fees": "0",
        "daytrade_count": 0,
    }


def position(position: Position, quote: Quote, held: Decimal) -> Json:
    value = position.qty * quote.middle
    gain = value - position.cost
    share = number((gain / abs(position.cost)).quantize(Decimal("1e-6"))) if position.cost else "0"
    side = Decimal(1) if position.qty > 0 else Decimal(-1)
    return {
        "asset_id": asset_id(position.symbol),
        "symbol": position.symbol,
        "exchange": "CRYPTO" if "/" in position.symbol else "NASDAQ",
        "asset_class": asset_class(position.symbol),
        "asset_marginable": False,
        "qty": number(position.qty),
        "qty_available": number(position.qty - side * held),
        "avg_entry_price": number(position.average_price),
        "side": "long" if position.qty > 0 else "short",
        "market_value": money(value),
        "cost_basis": money(position.cost),
        "unrealized_pl": money(gain),
        "unrealized_plpc": share,
        "unrealized_intraday_pl": money(gain),
        "unrealized_intraday_plpc": share,
        "current_price": number(quote.middle),
        "lastday_price": number(quote.middle),
        "change_today": "0",
    }


def activity(row: Row) -> Json:
    """A fill as one of Alpaca's account activities; its `id` ends in the execution id of the trade update."""
    at = row["at"][:-6] + "Z"
    compact = "".join(filter(str.isdigit, row["at"][:19]))
    return {
        "id": f"{compact}{row['at'][20:23]}::{row['execution_id']}",
        "activity_type": "FILL",
        "execution_id": row["execution_id"],
        "transaction_time": at,
        "type": row["kind"],
        "price": number(Decimal(row["price"])),
        "qty": number(Decimal(row["qty"])),
        "side": row["side"],
        "symbol": row["symbol"],
        "leaves_qty": number(Decimal(row["leaves_qty"])),
        "order_id": row["order_id"],
        "cum_qty": number(Decimal(row["cum_qty"])),
        "order_status": row["order_status"],
    }


def asset(symbol: str) -> Json:
    return {
        "id": asset_id(symbol),
        "class": asset_class(symbol),
        "exchange": "CRYPTO" if "/" in symbol else "NASDAQ",
        "symbol": symbol,
        "name": symbol,
        "status": "active",
        "tradable": True,
        "marginable": False,
        "shortable": True,
        "easy_to_borrow": True,
        "fractionable": True,
    }


def clock(now: datetime) -> Json:
    """Always open: the next close never comes nearer."""
    ahead = time(now + timedelta(days=1))
    return {"timestamp": time(now), "is_open": True, "next_open": ahead, "next_close": ahead}


def quote(quote: Quote) -> Json:
    return {
        "symbol": quote.symbol,
        "bid": number(quote.bid),
        "ask": number(quote.ask),
        "bid_size": number(quote.bid_size),
        "ask_size": number(quote.ask_size),
        "pinned": quote.pinned,
        "step": quote.step,
    }


def latest_quote(quote: Quote, now: datetime) -> Json:
    """As the market data API shows it, where prices are numbers. A quote stands until the next one."""
    return {
        "t": time(now),
        "ax": "V",
        "ap": float(quote.ask),
        "as": float(quote.ask_size or 0),
        "bx": "V",
        "bp": float(quote.bid),
        "bs": float(quote.bid_size or 0),
        "c": ["R"],
        "z": "C",
    }


def latest_trade(quote: Quote, now: datetime) -> Json:
    """This market has no trades but those of its accounts; its price is the middle of the quote."""
    return {"t": time(now), "x": "V", "p": float(quote.middle), "s": 1, "c": ["@"], "i": quote.step, "z": "C"}
