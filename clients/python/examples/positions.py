"""What an account holds, as rows for a table or a notebook: `pandas.DataFrame(rows(client))`."""

from dataclasses import asdict
from typing import Any

import tip_client as tip


def rows(client: tip.Client) -> list[dict[str, Any]]:
    """One for each position, the largest first, with its share of what is held."""
    held = sorted(client.positions(), key=lambda position: abs(position.market_value or 0), reverse=True)
    whole = sum(abs(position.market_value or 0) for position in held)
    return [{**asdict(found), "share": abs(found.market_value or 0) / whole if whole else None} for found in held]


def main(client: tip.Client) -> None:
    for row in rows(client):
        print("{symbol:10} {quantity:>12} @ {last_price} = {market_value} ({price_as_of:%H:%M:%S})".format(**row))


if __name__ == "__main__":
    with tip.Client.from_env() as client:
        main(client)
