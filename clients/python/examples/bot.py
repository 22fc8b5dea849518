"""A bot with stop and target: hold a stop at the broker, and sell when the target is reached: python bot.py AAPL 2"""

import sys
import time
from decimal import Decimal

import tip_client as tip

TARGET, STOP = Decimal("1.02"), Decimal("0.99")


def main(client: tip.Client, symbol: str, quantity: int) -> tip.Order:
    entry = client.buy(symbol, quantity, tags=["bot"]).wait("FILLED", timeout=60)
    paid = entry.average_fill_price or Decimal(0)
    stop = client.sell(symbol, quantity, stop=round(paid * STOP, 2), time_in_force="GTC", tags=["bot"])
    while stop.is_open and (client.quote(symbol).bid or 0) < paid * TARGET:
        time.sleep(1)
        stop = stop.refresh()
    return take_profit(client, stop) if stop.is_open else stop


def take_profit(client: tip.Client, stop: tip.Order) -> tip.Order:
    """The broker keeps the shares for the stop; what it has not sold by then is free when it has ended."""
    try:
        stop = stop.cancel()
    except tip.IntentTerminal:
        print("the stop was filled meanwhile")
    stop = stop.wait(timeout=60)
    left = stop.spec.quantity - stop.filled_quantity
    return client.sell(stop.symbol, left, tags=["bot"]).wait("FILLED", timeout=60) if left else stop


if __name__ == "__main__":
    with tip.Client.from_env() as client:
        order = main(client, sys.argv[1], int(sys.argv[2]))
        print(order.order_side, order.filled_quantity, order.symbol, "@", order.average_fill_price)
