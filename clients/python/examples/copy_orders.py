"""Copy the orders of one account to another, each once, also after a restart: python copy_orders.py FROM TO

The original's id is the copy's `client_id`, which an account takes once: a copy that was made before is found, not made
again. So a position that is a little old does no harm.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import tip_client as tip

STORE = Path("copied.position")


def copies(source: tip.Client, target: tip.Client, store: Path) -> Iterator[tip.Order]:
    """The copy of each order that was created on the source account, as it comes."""
    after = store.read_text() if store.exists() else 0
    with source.events(after=after, types=[tip.ActionAppended]) as events:
        for event in events:
            if isinstance(event, tip.ActionAppended) and event.command.type == "CREATE" and event.spec:
                order = tip.NewOrder(event.symbol, event.order_side, event.spec, event.intent_id, event.tags)
                yield copied(target, order)
            store.write_text(str(event.position))


def copied(target: tip.Client, order: tip.NewOrder) -> tip.Order:
    try:
        return target.submit(order)
    except tip.ClientIdTaken as taken:
        return target.order(taken.intent_id or "")


if __name__ == "__main__":
    with tip.Client.from_env() as client:
        for order in copies(client.for_account(sys.argv[1]), client.for_account(sys.argv[2]), STORE):
            print(order.intent_id, order.order_side, order.spec.quantity, order.symbol)
