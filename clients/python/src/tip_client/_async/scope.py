"""What every group of calls has: the connections, and the account that is meant."""

from tip_client._async.http import AsyncHttp
from tip_client.errors import ConfigurationError
from tip_client.request import at


class AsyncScope:
    """A group of calls."""

    def __init__(self, http: AsyncHttp, account: str | None) -> None:
        self._http = http
        self._account = account

    @property
    def account_id(self) -> str:
        """The trading account that is meant."""
        if self._account is None:
            raise ConfigurationError("No account: set TIP_ACCOUNT, or use client.for_account(...).")
        return self._account

    def _path(self, rest: str, *names: str) -> str:
        """A path under the account's."""
        return at("/v1/accounts/{}" + rest, self.account_id, *names)
