"""What the person reads when everything is ready."""

from typing import Any


def banner(local: dict[str, Any], seconds: float | None = None) -> str:
    """From the contents of local.json, so that it can be shown again later."""
    took = f" in {seconds:.1f} s" if seconds is not None else ""
    lines = [
        "",
        f"The Trading Intents Platform is ready{took}.",
        "",
        f"  API           {local['base_url']}",
        f"  Docs          {local['base_url']}/docs",
        f"  Stream        {local['stream_target']} (gRPC, plaintext)",
        f"  Paper broker  {local['paper_broker_url']}",
        "",
        *quickstart(local),
    ]
    return "\n".join(lines)


def quickstart(local: dict[str, Any]) -> list[str]:
    acme = local.get("organizations", {}).get("acme")
    if not acme:
        return []
    address = f"{local['base_url']}/v1/accounts/{acme['accounts']['paper']}/intents"
    return ["Try it:", "", f"  curl -H 'x-api-key: {acme['api_keys']['paper']}' {address}", ""]
