# Made from _async/controls.py by generate.py; `make client` makes it anew.
"""Controls: what may be traded, when, how much, and whether at all."""

from collections.abc import Iterator, Iterable, Mapping
from datetime import datetime, time
from typing import Any, Unpack

from tip_client._sync.scope import Scope
from tip_client.commands import create_command
from tip_client.limits import AccountLimitValues, SymbolLimitValues, limits_body
from tip_client.models.controls import (
    AccountLimits,
    AccountSwitch,
    ControlChange,
    OrganizationSwitch,
    Preview,
    SymbolControls,
    SymbolLimits,
    SymbolManualControl,
    SymbolTimeControl,
)
from tip_client.orders import NewOrder
from tip_client.request import ask, at, change, delete, get, given, listed, plain
from tip_client.words import TradingState

_ORGANIZATION = "/v1/controls/organization"


class Controls(Scope):
    """Controls of one account, of its symbols, and of the organization."""

    def symbols(self, *, page_size: int | None = None) -> Iterator[SymbolControls]:
        """Every symbol that has a control."""
        for symbol in self._http.pages(listed(self._at("/symbols"), SymbolControls, page_size)):
            yield symbol

    def symbol(self, symbol: str) -> SymbolManualControl:
        """Whether a symbol is disabled by hand; raises NotFound where that was never said."""
        return self._http.call(get(self._at("/symbols/{}", symbol), SymbolManualControl))

    def disable_symbol(
        self, symbol: str, *, reason: str | None = None, if_match: int | None = None
    ) -> SymbolManualControl:
        """Refuse orders for the symbol from now on."""
        return self._manual(symbol, True, reason, if_match)

    def enable_symbol(self, symbol: str, *, if_match: int | None = None) -> SymbolManualControl:
        return self._manual(symbol, False, None, if_match)

    def _manual(self, symbol: str, disabled: bool, reason: str | None, if_match: int | None) -> SymbolManualControl:
        body = {"manually_disabled": disabled, **given(manual_reason=reason)}
        path = self._at("/symbols/{}", symbol)
        return self._http.call(change("PUT", path, SymbolManualControl, body, if_match))

    def remove_symbol(self, symbol: str, *, if_match: int | None = None) -> None:
        """Remove the manual control."""
        self._http.call(delete(self._at("/symbols/{}", symbol), if_match))

    def trading_hours(self, symbol: str) -> SymbolTimeControl:
        """When a symbol is traded; raises NotFound where that was never said."""
        return self._http.call(get(self._at("/symbols/{}/time", symbol), SymbolTimeControl))

    def set_trading_hours(
        self,
        symbol: str,
        *,
        start: time | None = None,
        end: time | None = None,
        stale_order_millis: int | None = None,
        clear: Iterable[str] = (),
        if_match: int | None = None,
    ) -> SymbolTimeControl:
        """Set what is given and remove what `clear` names: trading_start, trading_end, stale_order_millis."""
        hours = given(trading_start=start and f"{start:%H:%M:%S}", trading_end=end and f"{end:%H:%M:%S}")
        body = {**hours, **given(stale_order_millis=stale_order_millis, clear=list(clear) or None)}
        path = self._at("/symbols/{}/time", symbol)
        return self._http.call(change("PATCH", path, SymbolTimeControl, body, if_match))

    def remove_trading_hours(self, symbol: str, *, if_match: int | None = None) -> None:
        self._http.call(delete(self._at("/symbols/{}/time", symbol), if_match))

    def symbol_limits(self, symbol: str) -> SymbolLimits:
        """The limits of a symbol; raises NotFound where there are none."""
        return self._http.call(get(self._at("/symbols/{}/limits", symbol), SymbolLimits))

    def set_symbol_limits(
        self, symbol: str, *, if_match: int | None = None, **limits: Unpack[SymbolLimitValues]
    ) -> SymbolLimits:
        """Put these limits in place of all former ones."""
        path = self._at("/symbols/{}/limits", symbol)
        return self._http.call(change("PUT", path, SymbolLimits, limits_body(limits), if_match))

    def remove_symbol_limits(self, symbol: str, *, if_match: int | None = None) -> None:
        self._http.call(delete(self._at("/symbols/{}/limits", symbol), if_match))

    def limits(self) -> AccountLimits:
        """The limits of the account; raises NotFound where there are none."""
        return self._http.call(get(self._at("/limits"), AccountLimits))

    def set_limits(self, *, if_match: int | None = None, **limits: Unpack[AccountLimitValues]) -> AccountLimits:
        """Put these limits in place of all former ones."""
        return self._http.call(change("PUT", self._at("/limits"), AccountLimits, limits_body(limits), if_match))

    def remove_limits(self, *, if_match: int | None = None) -> None:
        self._http.call(delete(self._at("/limits"), if_match))

    def trading_state(self) -> AccountSwitch:
        """What the account may trade; raises NotFound where it was never said, which is ACTIVE."""
        return self._http.call(get(self._at(""), AccountSwitch))

    def set_trading_state(
        self,
        state: TradingState | str,
        *,
        reason: str | None = None,
        cancel_open: bool = False,
        if_match: int | None = None,
    ) -> AccountSwitch:
        """What the account may trade from now on; `cancel_open` goes with HALTED and cancels all open orders."""
        body = given(trading_state=state, reason=reason, cancel_open=cancel_open or None)
        return self._http.call(change("PUT", self._at(""), AccountSwitch, body, if_match))

    def remove_trading_state(self, *, if_match: int | None = None) -> None:
        self._http.call(delete(self._at(""), if_match))

    def organization_state(self) -> OrganizationSwitch:
        """What the whole organization may trade; raises NotFound where it was never said, which is ACTIVE."""
        return self._http.call(get(_ORGANIZATION, OrganizationSwitch))

    def set_organization_state(
        self,
        state: TradingState | str,
        *,
        reason: str | None = None,
        cancel_open: bool = False,
        if_match: int | None = None,
    ) -> OrganizationSwitch:
        """What the whole organization may trade from now on; by its admins."""
        body = given(trading_state=state, reason=reason, cancel_open=cancel_open or None)
        return self._http.call(change("PUT", _ORGANIZATION, OrganizationSwitch, body, if_match))

    def remove_organization_state(self, *, if_match: int | None = None) -> None:
        self._http.call(delete(_ORGANIZATION, if_match))

    def history(self, *, symbol: str | None = None, page_size: int | None = None) -> Iterator[ControlChange]:
        """Every change of the account's controls, newest first."""
        for found in self._http.pages(listed(self._at("/history"), ControlChange, page_size, symbol=symbol)):
            yield found

    def organization_history(self, *, page_size: int | None = None) -> Iterator[ControlChange]:
        """Every change of the organization's trading state, newest first."""
        for found in self._http.pages(listed(f"{_ORGANIZATION}/history", ControlChange, page_size)):
            yield found

    def preview(
        self, order: NewOrder, *, at: datetime | None = None, facts: Mapping[str, Any] | None = None
    ) -> Preview:
        """Whether an order would pass the controls, now or at another moment, and why not."""
        command = create_command(order)
        payload = {name: value for name, value in command["payload"].items() if name not in ("client_id", "tags")}
        judged = {name: plain(value) for name, value in facts.items()} if facts else None
        body = {"command": {**command, "payload": payload}, **given(at=at, facts=judged)}
        return self._http.call(ask(self._at("/preview"), Preview, body))

    def _at(self, rest: str, *names: str) -> str:
        return at("/v1/controls/accounts/{}" + rest, self.account_id, *names)
