"""Calls of the Python SDK, by operation, for the API document: see `chassis.openapi_samples`."""

CALLS = {
    "statements_show_log_signing_keys": "client.log_keys()",
    "holdings_balances": "client.balances()",
    "bulk_read_bulk_operation": "client.bulk_operation(bulk_operation_id)",
    "intents_list_intents": "list(client.history())",
    "intents_submit_intent": 'client.buy("AAPL", 10, limit="187.20").wait("FILLED", timeout=10)',
    "intents_latest": "client.latest_action(intent_id)",
    "intents_actions": "list(client.actions(intent_id))",
    "orders_show_timeline": "list(client.timeline(intent_id))",
    "intents_submit_batch": 'client.submit_batch([tip.Limit("AAPL", "BUY", 10, limit="187.20")], atomic=True)',
    "bulk_cancel_intents": 'client.cancel_all(symbol="AAPL").wait()',
    "intents_stats": 'client.statistics("last_day")',
    "intents_verify": "client.verify()",
    "orders_list_orders": 'list(client.orders(symbol="AAPL"))',
    "holdings_positions": "client.positions()",
    "bulk_close_positions": 'client.close_positions(symbol="AAPL").wait()',
    "holdings_quote": 'client.quote("AAPL")',
    "holdings_refresh": "client.refresh()",
    "orders_list_refusals": "list(client.refusals())",
    "statements_show_statement": 'b"".join(client.statement())',
}
