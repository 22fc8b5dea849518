"""Buy one share and see what became of it: python first_order.py AAPL"""

import sys

import tip_client as tip


def main(client: tip.Client, symbol: str) -> tip.Order:
    order = client.buy(symbol, 1).wait("FILLED", timeout=60)
    print(f"{order.status} {order.filled_quantity} {symbol} @ {order.average_fill_price}, intent {order.intent_id}")
    return order


if __name__ == "__main__":
    with tip.Client.from_env() as client:
        main(client, sys.argv[1])
