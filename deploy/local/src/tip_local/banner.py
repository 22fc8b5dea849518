"""What the person reads when everything is ready."""

import json
from typing import Any


def banner(local: dict[str, Any], seconds: float | None = None) -> str:
    """From the contents of local.json, so that it can be shown again later."""
    took = f" in {seconds:.1f} s" if seconds is not None else ""
    lines = [
        "",
        f"The Trading Intents Platform is ready{took}.",
        "",
        *addresses(local),
        *console(local),
        "  Later         make status shows these addresses, make logs the log; make stop ends it all",
        "",
        *quickstart(local),
    ]
    return "\n".join(lines)


def addresses(local: dict[str, Any]) -> list[str]:
    return [
        f"  API           {local['base_url']}",
        f"  Docs          {local['base_url']}/docs",
        f"  Manual        {local['base_url']}/manual",
        f"  Stream        {local['stream_target']} (gRPC, plaintext); {local['events_url']} (server-sent events)",
        f"  Paper broker  {local['paper_broker_url']}",
    ]


def console(local: dict[str, Any]) -> list[str]:
    """Where people look, and whom the demo data lets in."""
    shown = [f"  Console       {local['base_url']}/console"]
    if login := local.get("login"):
        shown.append(f"                sign in as {login['email']} with the password {login['password']}")
    return shown


def quickstart(local: dict[str, Any]) -> list[str]:
    acme = local.get("organizations", {}).get("acme")
    if not acme:
        return []
    account = f"/v1/accounts/{acme['accounts']['paper']}"
    key = f"-H 'x-api-key: {acme['api_keys']['paper']}'"
    payload = {"symbol": "AAPL", "order_side": "BUY", "spec": {"Market": {"quantity": "1"}}}
    body = json.dumps({"command": {"type": "CREATE", "payload": payload}})
    return [
        "Buy a share, then see what became of it:",
        "",
        f"  curl {key} -H 'content-type: application/json' -d '{body}' {local['base_url']}{account}/intents",
        f"  curl {key} {local['base_url']}{account}/intents",
        "",
        "Watch the account's events as they come:",
        "",
        f"  curl -N {key} {local['events_url']}{account}/events",
        "",
    ]
