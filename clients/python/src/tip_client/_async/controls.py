"""Controls: what may be traded, when, how much, and whether at all."""

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, time
from typing import Any, Unpack

from tip_client._async.scope import AsyncScope
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


class AsyncControls(AsyncScope):
    """Controls of one account, of its symbols, and of the organization."""

    async def symbols(self, *, page_size: int | None = None) -> AsyncIterator[SymbolControls]:
        """Every symbol that has a control."""
        async for symbol in self._http.pages(listed(self._at("/symbols"), SymbolControls, page_size)):
            yield symbol

    async def symbol(self, symbol: str) -> SymbolManualControl:
        """Whether a symbol is disabled by hand; raises NotFound where that was never said."""
        return await self._http.call(get(self._at("/symbols/{}", symbol), SymbolManualControl))

    async def disable_symbol(
        self, symbol: str, *, reason: str | None = None, if_match: int | None = None
    ) -> SymbolManualControl:
        """Refuse orders for the symbol from now on."""
        return await self._manual(symbol, True, reason, if_match)

    async def enable_symbol(self, symbol: str, *, if_match: int | None = None) -> SymbolManualControl:
        return await self._manual(symbol, False, None, if_match)

    async def _manual(
        self, symbol: str, disabled: bool, reason: str | None, if_match: int | None
    ) -> SymbolManualControl:
        body = {"manually_disabled": disabled, **given(manual_reason=reason)}
        path = self._at("/symbols/{}", symbol)
        return await self._http.call(change("PUT", path, SymbolManualControl, body, if_match))

    async def remove_symbol(self, symbol: str, *, if_match: int | None = None) -> None:
        """Remove the manual control."""
        await self._http.call(delete(self._at("/symbols/{}", symbol), if_match))

    async def trading_hours(self, symbol: str) -> SymbolTimeControl:
        """When a symbol is traded; raises NotFound where that was never said."""
        return await self._http.call(get(self._at("/symbols/{}/time", symbol), SymbolTimeControl))

    async def set_trading_hours(
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
        return await self._http.call(change("PATCH", path, SymbolTimeControl, body, if_match))

    async def remove_trading_hours(self, symbol: str, *, if_match: int | None = None) -> None:
        await self._http.call(delete(self._at("/symbols/{}/time", symbol), if_match))

    async def symbol_limits(self, symbol: str) -> SymbolLimits:
        """The limits of a symbol; raises NotFound where there are none."""
        return await self._http.call(get(self._at("/symbols/{}/limits", symbol), SymbolLimits))

    async def set_symbol_limits(
        self, symbol: str, *, if_match: int | None = None, **limits: Unpack[SymbolLimitValues]
    ) -> SymbolLimits:
        """Put these limits in place of all former ones."""
        path = self._at("/symbols/{}/limits", symbol)
        return await self._http.call(change("PUT", path, SymbolLimits, limits_body(limits), if_match))

    async def remove_symbol_limits(self, symbol: str, *, if_match: int | None = None) -> None:
        await self._http.call(delete(self._at("/symbols/{}/limits", symbol), if_match))

    async def limits(self) -> AccountLimits:
        """The limits of the account; raises NotFound where there are none."""
        return await self._http.call(get(self._at("/limits"), AccountLimits))

    async def set_limits(self, *, if_match: int | None = None, **limits: Unpack[AccountLimitValues]) -> AccountLimits:
        """Put these limits in place of all former ones."""
        return await self._http.call(change("PUT", self._at("/limits"), AccountLimits, limits_body(limits), if_match))

    async def remove_limits(self, *, if_match: int | None = None) -> None:
        await self._http.call(delete(self._at("/limits"), if_match))

    async def trading_state(self) -> AccountSwitch:
        """What the account may trade; raises NotFound where it was never said, which is ACTIVE."""
        return await self._http.call(get(self._at(""), AccountSwitch))

    async def set_trading_state(
        self,
        state: TradingState | str,
        *,
        reason: str | None = None,
        cancel_open: bool = False,
        if_match: int | None = None,
    ) -> AccountSwitch:
        """What the account may trade from now on; `cancel_open` goes with HALTED and cancels all open orders."""
        body = given(trading_state=state, reason=reason, cancel_open=cancel_open or None)
        return await self._http.call(change("PUT", self._at(""), AccountSwitch, body, if_match))

    async def remove_trading_state(self, *, if_match: int | None = None) -> None:
        await self._http.call(delete(self._at(""), if_match))

    async def organization_state(self) -> OrganizationSwitch:
        """What the whole organization may trade; raises NotFound where it was never said, which is ACTIVE."""
        return await self._http.call(get(_ORGANIZATION, OrganizationSwitch))

    async def set_organization_state(
        self,
        state: TradingState | str,
        *,
        reason: str | None = None,
        cancel_open: bool = False,
        if_match: int | None = None,
    ) -> OrganizationSwitch:
        """What the whole organization may trade from now on; by its admins."""
        body = given(trading_state=state, reason=reason, cancel_open=cancel_open or None)
        return await self._http.call(change("PUT", _ORGANIZATION, OrganizationSwitch, body, if_match))

    async def remove_organization_state(self, *, if_match: int | None = None) -> None:
        await self._http.call(delete(_ORGANIZATION, if_match))

    async def history(self, *, symbol: str | None = None, page_size: int | None = None) -> AsyncIterator[ControlChange]:
        """Every change of the account's controls, newest first."""
        async for found in self._http.pages(listed(self._at("/history"), ControlChange, page_size, symbol=symbol)):
            yield found

    async def organization_history(self, *, page_size: int | None = None) -> AsyncIterator[ControlChange]:
        """Every change of the organization's trading state, newest first."""
        async for found in self._http.pages(listed(f"{_ORGANIZATION}/history", ControlChange, page_size)):
            yield found

    async def preview(
        self, order: NewOrder, *, at: datetime | None = None, facts: Mapping[str, Any] | None = None
    ) -> Preview:
        """Whether an order would pass the controls, now or at another moment, and why not."""
        command = create_command(order)
        payload = {name: value for name, value in command["payload"].items() if name not in ("client_id", "tags")}
        judged = {name: plain(value) for name, value in facts.items()} if facts else None
        body = {"command": {**command, "payload": payload}, **given(at=at, facts=judged)}
        return await self._http.call(ask(self._at("/preview"), Preview, body))

    def _at(self, rest: str, *names: str) -> str:
        return at("/v1/controls/accounts/{}" + rest, self.account_id, *names)
