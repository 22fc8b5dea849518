"""What limits count, as SQL for whoever changes it: orders accepted, and what is open of each symbol.

Whoever changes the totals of an account holds its head, so that they are changed in the order of the log.
"""

from intents.store.statuses import TERMINAL_SQL


def open_quantity(intent: str) -> str:
    """SQL for what may still be filled of the intent: a REPLACE on its way counts if it asks for more.

    Of the legs of an order group that exclude each other, one counts.
    """
    return f"""
        CASE WHEN {intent}.status IN ({TERMINAL_SQL}) OR {intent}.uncounted THEN 0
             ELSE greatest(0, greatest({intent}.quantity,
            CASE WHEN {intent}.status IN ('PENDING_REPLACE', 'PENDING_CANCEL') THEN {intent}.replace_quantity END)
            - {intent}.filled_quantity) END"""


def is_open(intent: str) -> str:
    """SQL for 1 of an intent that has not ended, 0 of one that has."""
    return f"CASE WHEN {intent}.status IN ({TERMINAL_SQL}) THEN 0 ELSE 1 END"


def add_to_totals(changes: str) -> str:
    """SQL that adds what `changes` gives to the totals of the symbols and of the accounts, and returns their orders.

    `changes` gives (account_id, organization_id, symbol, order_side, orders, opened, quantity), and reads the CTE
    `head`, so that heads are locked first.
    """
    return f"""
    INSERT INTO intents.order_total AS total (account_id, symbol, organization_id, orders, open_orders,
                                              open_buy_quantity, open_sell_quantity)
    SELECT account_id, counted.symbol, organization_id, sum(orders), sum(opened),
           sum(CASE WHEN order_side = 'BUY' AND counted.symbol <> '' THEN quantity ELSE 0 END),
           sum(CASE WHEN order_side = 'SELL' AND counted.symbol <> '' THEN quantity ELSE 0 END)
    FROM ({changes}) change CROSS JOIN LATERAL (VALUES (''), (change.symbol)) counted (symbol)
    GROUP BY account_id, counted.symbol, organization_id ORDER BY account_id, counted.symbol
    ON CONFLICT (account_id, symbol) DO UPDATE SET orders = total.orders + excluded.orders,
        open_orders = total.open_orders + excluded.open_orders,
        open_buy_quantity = total.open_buy_quantity + excluded.open_buy_quantity,
        open_sell_quantity = total.open_sell_quantity + excluded.open_sell_quantity
    RETURNING account_id, symbol, orders
    """  # noqa: S608 - only our own words
