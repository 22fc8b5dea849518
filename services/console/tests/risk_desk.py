"""An account of its own for tests about controls, and what they do with it."""

from typing import Any

XSS = "<img src=x onerror=document.title='broken'>"
ZONE = "America/New_York"


def new_account(stack: Any, name: str) -> str:
    return str(stack.new_account(name, ZONE))


def control(stack: Any, account: str, method: str, path: str = "", body: Any = None) -> Any:
    return stack.call(method, f"/v1/controls/accounts/{account}{path}", body)


def submit(stack: Any, account: str, symbol: str = "AAPL", spec: Any = None, **more: Any) -> Any:
    """An order that stays open, or another."""
    payload = {"symbol": symbol, "order_side": "BUY", "spec": spec or {"Limit": {"quantity": "7", "limit_price": "1"}}}
    command = {"command": {"type": "CREATE", "payload": {**payload, **more}}}
    return stack.call("POST", f"/v1/accounts/{account}/intents", command, key=stack.key())


def open_count(stack: Any, account: str) -> int:
    return len(stack.call("GET", f"/v1/accounts/{account}/orders?status=open")["data"])
