# Made from _async/holdings.py by generate.py; `make client` makes it anew.
"""What an account holds and what that is worth."""

from tip_client._sync.scope import Scope
from tip_client.models.holdings import Balances, Position, Positions, Quote, Refresh
from tip_client.request import change, get


class Holdings(Scope):
    """Positions, balances and prices of one account."""

    def positions(self) -> tuple[Position, ...]:
        """What the account holds."""
        return (self._http.call(get(self._path("/positions"), Positions))).data

    def balances(self) -> Balances:
        """The account's money."""
        return self._http.call(get(self._path("/balances"), Balances))

    def quote(self, symbol: str) -> Quote:
        """The latest price of a symbol; one that is too old is read again at the broker first."""
        return self._http.call(get(self._path("/quotes/{}", symbol), Quote))

    def refresh(self) -> None:
        """Have the account read at its broker now; what was read has an `as_of` after this."""
        self._http.call(change("POST", self._path("/refresh"), Refresh))
