"""Halt an account and cancel its orders when it has lost too much since the start: python watchdog.py 1000

The key needs `control:edit` and `intent:read`. `max_daily_loss` of the account's limits does it on the platform itself.
"""

import sys
import time
from decimal import Decimal

import tip_client as tip


def main(client: tip.Client, most: Decimal, every_s: float = 5.0) -> Decimal:
    start = equity(client)
    while (loss := start - equity(client)) <= most:
        time.sleep(every_s)
    client.controls.set_trading_state("HALTED", reason=f"lost {loss}", cancel_open=True)
    return loss


def equity(client: tip.Client) -> Decimal:
    """As the broker reports it, read anew."""
    client.refresh()
    while (found := client.balances().equity) is None:
        time.sleep(0.5)
    return found


if __name__ == "__main__":
    with tip.Client.from_env() as client:
        print("halted after a loss of", main(client, Decimal(sys.argv[1])))
