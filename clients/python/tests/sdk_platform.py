"""A running platform, and its callers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import tip_client as tip


@dataclass(frozen=True)
class Platform:
    """A running platform, as `local.json` describes it."""

    local: dict[str, Any]
    home: Path

    def settings(self, organization: str = "acme", environment: str = "paper", **more: Any) -> tip.Settings:
        """Of a caller with an API key."""
        found = self.local["organizations"][organization]
        key, account = found["api_keys"][environment], found["accounts"][environment]
        return tip.Settings(
            **{"url": self.local["base_url"], "key": key, "account": account, **self.grpc, **more},
        )

    @property
    def grpc(self) -> dict[str, str]:
        return {"stream_target": self.local["stream_target"]}

    def admin(self, organization: str = "acme") -> tip.Client:
        token = self.local["organizations"][organization]["tokens"]["admin"]
        return tip.Client(self.local["base_url"], token=token, account=self.account(organization))

    def operator(self, organization: str = "acme") -> tip.Client:
        token = self.local["service_accounts"]["full"]["token"]
        return tip.Client(
            self.local["base_url"], token=token, organization=self.local["organizations"][organization]["id"]
        )

    def account(self, organization: str = "acme", environment: str = "paper") -> str:
        return str(self.local["organizations"][organization]["accounts"][environment])

    def set_price(self, symbol: str, price: int) -> None:
        """Move the paper broker's market of a symbol."""
        headers = {"Authorization": f"Bearer {self.local['paper_broker_operator_token']}"}
        url, quote = f"{self.local['paper_broker_url']}/sim/quotes/{symbol}", {"bid": str(price), "ask": str(price)}
        httpx.put(url, json=quote, headers=headers).raise_for_status()
