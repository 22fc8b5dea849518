"""People who change things while others trade: controls, credentials, accounts."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fault_client import Client
from fault_journal import now
from fault_stories import QUICK, Accounts

Json = dict[str, Any]


@dataclass
class Operators:
    """Threads with one topic each, so that the history of every control is one line."""

    client: Client
    """Made per thread by `twin`."""
    admin: Client
    """The same with the token of an administrator: the organization's switch is closed to keys."""
    controlled: list[str]
    credentialed: list[str]
    accounts: Accounts
    dice: random.Random
    errors: list[BaseException] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        topics = [self.halts, self.organization, self.symbols, self.credentials, self.births_and_deaths]
        self.threads = [threading.Thread(target=self._run, args=(topic,), daemon=True) for topic in topics]
        for thread in self.threads:
            thread.start()

    def finish(self) -> None:
        """Everything that was switched off is on again when they are done."""
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, topic: Callable[[Client, random.Random], None]) -> None:
        client, dice = self.client.twin(), random.Random(self.dice.random())
        try:
            while not self.stop.wait(dice.uniform(0.3, 1.5)):
                topic(client, dice)
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            self.errors.append(error)

    # ---- controls

    def halts(self, client: Client, dice: random.Random) -> None:
        """Longer than the two seconds after which no order may leave any more."""
        account = dice.choice(self.controlled)
        state = dice.choice(("HALTED", "HALTED", "REDUCING"))
        self._switch(client, "account_switch", account, f"/v1/controls/accounts/{account}", {"trading_state": state})
        self.stop.wait(dice.uniform(3.0, 7.0))
        self._switch(client, "account_switch", account, f"/v1/controls/accounts/{account}", {"trading_state": "ACTIVE"})

    def organization(self, _client: Client, dice: random.Random) -> None:
        if self.stop.wait(dice.uniform(10, 150)):
            return
        path = "/v1/controls/organization"
        self._switch(self.admin, "organization_switch", None, path, {"trading_state": "HALTED"})
        self.stop.wait(dice.uniform(2.5, 4.0))
        self._switch(self.admin, "organization_switch", None, path, {"trading_state": "ACTIVE"})

    def symbols(self, client: Client, dice: random.Random) -> None:
        account, symbol = dice.choice(self.controlled), dice.choice((QUICK, "SIM.TRICKLE20", "SIM.OPEN"))
        base = f"/v1/controls/accounts/{account}/symbols/{symbol}"
        which = dice.choice(("manual", "manual", "limits", "stale"))
        if which == "manual":
            self._switch(client, "symbol_manual", account, base, {"manually_disabled": True}, symbol)
            self.stop.wait(dice.uniform(0.5, 3.0))
            self._switch(client, "symbol_manual", account, base, {"manually_disabled": False}, symbol)
        elif which == "limits":
            limits = {"max_quantity": "2", "max_orders_per_minute": dice.choice((1, 20))}
            self._switch(client, "symbol_limits", account, base + "/limits", limits, symbol)
            self.stop.wait(dice.uniform(0.5, 3.0))
            self._switch(client, "symbol_limits", account, base + "/limits", None, symbol)
        else:
            stale = {"stale_order_millis": dice.choice((1000, 3000))}
            self._switch(client, "symbol_time", account, base + "/time", stale, symbol)
            self.stop.wait(dice.uniform(1.0, 3.0))
            self._switch(client, "symbol_time", account, base + "/time", {"clear": ["stale_order_millis"]}, symbol)

    def _switch(
        self,
        client: Client,
        control: str,
        account: str | None,
        path: str,
        value: Json | None,
        symbol: str | None = None,
    ) -> None:
        """`value` None removes it. `begun` is when it may have counted first, `answered` when it must."""
        method = "DELETE" if value is None else "PATCH" if control == "symbol_time" else "PUT"
        begun = now()
        answer, sent = client.until_answered(method, path, value)
        client.journals.controls.write(
            {
                "control": control,
                "account": account,
                "symbol": symbol,
                "value": value,
                "begun": begun,
                "answered": now(),
                "repeated": sent > begun + 0.001,
                "status": answer.status,
                "code": answer.code,
                "version": answer.body.get("version"),
            }
        )

    # ---- credentials and accounts

    def credentials(self, client: Client, dice: random.Random) -> None:
        """Added, rotated to another account at the broker, taken away."""
        account = dice.choice(self.credentialed)
        base = f"/v1/accounts/{account}/credentials"
        pair = _pair()
        made = self._change(client, account, "credential.created", "POST", base, {"label": "run", "secret": pair}, pair)
        credential = made.get("id")
        self.stop.wait(dice.uniform(1.0, 6.0))
        if credential and dice.random() < 0.6:
            pair = _pair()
            path = f"{base}/{credential}/secret"
            self._change(client, account, "credential.updated", "PUT", path, {"secret": pair}, pair)
            self.stop.wait(dice.uniform(1.0, 6.0))
        if credential and dice.random() < 0.6:
            self._change(client, account, "credential.deleted", "DELETE", f"{base}/{credential}", None)

    def births_and_deaths(self, client: Client, dice: random.Random) -> None:
        body = {"name": "short-lived", "broker": "paper", "environment": "paper"}
        account = str(self._change(client, None, "account.created", "POST", "/v1/accounts", body).get("id"))
        self.accounts.add(account)
        self.stop.wait(dice.uniform(4.0, 15.0))
        self.accounts.remove(account)
        if dice.random() < 0.7:
            self._change(client, account, "account.deleted", "DELETE", f"/v1/accounts/{account}", None)

    def _change(
        self, client: Client, account: str | None, event: str, method: str, path: str, body: Json | None,
        pair: Json | None = None,
    ) -> Json:  # fmt: skip
        begun = now()
        answer, sent = client.until_answered(method, path, body)
        client.journals.accounts.write(
            {
                "event": event,
                "account": account or answer.body.get("id"),
                "credential": answer.body.get("id") if "credential" in event else None,
                "pair": pair,
                "begun": begun,
                "answered": now(),
                "repeated": sent > begun + 0.001,
                "status": answer.status,
                "code": answer.code,
            }
        )
        return answer.body if answer.status < 400 else {}


def _pair() -> Json:
    return {"key_id": f"K{uuid4().hex}", "secret_key": uuid4().hex}
