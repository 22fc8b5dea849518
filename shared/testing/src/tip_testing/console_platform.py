"""A running platform with demo data, for whoever uses its console and its API side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import requests

TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class ConsolePlatform:
    """As `local.json` describes it."""

    local: dict[str, Any]
    ca: Path | None = None
    """The authority of the ingress's certificate; None without TLS."""

    @property
    def base(self) -> str:
        return str(self.local["base_url"])

    def account(self, organization: str = "acme", environment: str = "paper") -> str:
        return str(self.local["organizations"][organization]["accounts"][environment])

    def key(self, organization: str = "acme", environment: str = "paper") -> str:
        return str(self.local["organizations"][organization]["api_keys"][environment])

    def call(self, method: str, path: str, body: Any = None, *, organization: str = "acme", key: str = "") -> Any:
        """The API as an admin, or with a key."""
        token = self.local["organizations"][organization]["tokens"]["admin"]
        headers = {"x-api-key": key} if key else {"Authorization": f"Bearer {token}"}
        verify = str(self.ca) if self.ca else True
        url = self.base + path
        answer = requests.request(method, url, json=body, headers=headers, timeout=TIMEOUT_S, verify=verify)
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.content else None

    def new_account(self, name: str, time_zone: str = "America/New_York") -> str:
        """At the paper broker, so that no other test's orders are refused."""
        about = {"name": f"{name} {uuid4().hex[:6]}", "broker": "paper", "environment": "paper", "time_zone": time_zone}
        return str(self.call("POST", "/v1/accounts", about)["id"])
