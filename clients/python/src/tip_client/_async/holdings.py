"""What an account holds and what that is worth."""

from tip_client._async.scope import AsyncScope
from tip_client.models.holdings import Balances, Position, Positions, Quote, Refresh
from tip_client.request import change, get


class AsyncHoldings(AsyncScope):
    """Positions, balances and prices of one account."""

    async def positions(self) -> tuple[Position, ...]:
        """What the account holds."""
        return (await self._http.call(get(self._path("/positions"), Positions))).data

    async def balances(self) -> Balances:
        """The account's money."""
        return await self._http.call(get(self._path("/balances"), Balances))

    async def quote(self, symbol: str) -> Quote:
        """The latest price of a symbol; one that is too old is read again at the broker first."""
        return await self._http.call(get(self._path("/quotes/{}", symbol), Quote))

    async def refresh(self) -> None:
        """Have the account read at its broker now; what was read has an `as_of` after this."""
        await self._http.call(change("POST", self._path("/refresh"), Refresh))
