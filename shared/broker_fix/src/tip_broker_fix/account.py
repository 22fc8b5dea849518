"""The adapter: the gateway answers in Alpaca's shapes, as the paper broker does, so one reading serves all three."""

from collections.abc import Mapping, Sequence
from typing import Any

from tip_broker_alpaca.account import Alpaca, Connection
from tip_brokers.http_client import Answer, HttpClient
from tip_brokers.protocol import Check, NewOrder, OutcomeUnknown, Refused, Unreachable, no_check

DOWN = 503
"""A gateway without its session: nothing was written to the broker."""


class Gateways(Connection):
    """The gateways of one session, of which one owns it. The next is tried only where nothing was done."""

    def __init__(self, addresses: Sequence[str], **seconds: float) -> None:
        super().__init__(addresses[0], None, **seconds)
        self._clients = [HttpClient(address, **seconds) for address in addresses]
        self.call_seconds *= len(addresses)

    def account(self, secret: Mapping[str, str]) -> "FixAccount":
        return FixAccount(self, secret)

    def call(self, method: str, path: str, headers: Mapping[str, str], check: Check = no_check, **more: Any) -> Answer:
        for client in self._in_turn():
            try:
                answer = client.call(method, path, headers, check, **more)
            except Unreachable:
                continue
            except OutcomeUnknown:
                self.address = self._in_turn()[-1].address  # perhaps this one is frozen: it comes last from now on
                raise
            if answer.status != DOWN:
                self.address = client.address
                return answer
        raise Unreachable("session_down")

    def _in_turn(self) -> list[HttpClient]:
        """The one that answered last comes first."""
        return sorted(self._clients, key=lambda client: client.address != self.address)


class FixAccount(Alpaca):
    def __init__(self, connection: Gateways, secret: Mapping[str, str]) -> None:
        super().__init__(connection, secret["account"], secret["secret_key"])
        self._destination = secret.get("destination")

    def new_order(self, order: NewOrder) -> dict[str, Any]:
        return {**super().new_order(order), "destination": self._route(order)}

    def _route(self, order: NewOrder) -> str | None:
        if order.route_strategy != "DIRECT":
            return None
        if not self._destination:
            raise Refused("NO_DESTINATION", "The account's credential names no destination for DIRECT orders.")
        return self._destination
