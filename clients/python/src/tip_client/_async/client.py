"""The client: everything the platform does, for one caller."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, Self

from tip_client._async.accounts import AsyncAccounts, AsyncCredentials
from tip_client._async.controls import AsyncControls
from tip_client._async.holdings import AsyncHoldings
from tip_client._async.http import AsyncHttp
from tip_client._async.identity import AsyncKeys, AsyncMe, AsyncOrganizations, AsyncServiceAccounts
from tip_client._async.server_sent import AsyncServerSentSource
from tip_client._async.stream import AsyncEventStream, AsyncSource
from tip_client._async.trading import AsyncTrading
from tip_client.cursor import Cursor
from tip_client.discovery import API_DOCUMENT, platform_info
from tip_client.errors import ConfigurationError
from tip_client.events import Event, LogPosition, subscriptions
from tip_client.models.platform import PlatformInfo
from tip_client.models.streams import OpenStreams
from tip_client.request import get
from tip_client.settings import Settings


class AsyncClient(AsyncTrading, AsyncHoldings):
    """A client of the platform: `AsyncClient.from_env()`, or with an address and a credential.

    The calls on it are about its account; `for_account` means another one on the same connections.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        token: str | Callable[[], str] | None = None,
        account: str | None = None,
        organization: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        given = {"url": url, "key": key, "token": token, "account": account, "organization": organization}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        made = replace(settings or Settings(), **changes)
        super().__init__(AsyncHttp(made), made.account)

    @classmethod
    def from_env(cls, profile: str | None = None) -> Self:
        """From `TIP_URL`, `TIP_KEY` and `TIP_ACCOUNT`, and what these leave open from a profile of the user's."""
        return cls(settings=Settings.from_env(profile))

    def for_account(self, account_id: str) -> Self:
        """The same client, for another account."""
        other = type(self).__new__(type(self))
        AsyncTrading.__init__(other, self._http, account_id)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def platform(self) -> PlatformInfo:
        """Version, speed and clock of the platform, by one request that needs no credential and is not repeated."""
        document, date, seconds = await self._http.probe(API_DOCUMENT.path)
        return platform_info(document, date, seconds, datetime.now(UTC))

    @cached_property
    def accounts(self) -> AsyncAccounts:
        """Trading accounts, brokers, the outbox."""
        return AsyncAccounts(self._http, self._account)

    @cached_property
    def credentials(self) -> AsyncCredentials:
        """Broker credentials of the account."""
        return AsyncCredentials(self._http, self._account)

    @cached_property
    def controls(self) -> AsyncControls:
        """What may be traded, when, how much, and whether at all."""
        return AsyncControls(self._http, self._account)

    @cached_property
    def organizations(self) -> AsyncOrganizations:
        """Organizations, their members and entitlements."""
        return AsyncOrganizations(self._http, self._account)

    @cached_property
    def keys(self) -> AsyncKeys:
        """API keys of the organization."""
        return AsyncKeys(self._http, self._account)

    @cached_property
    def service_accounts(self) -> AsyncServiceAccounts:
        """Service accounts, for operators."""
        return AsyncServiceAccounts(self._http, self._account)

    @cached_property
    def me(self) -> AsyncMe:
        """Whoever calls."""
        return AsyncMe(self._http, self._account)

    def events(
        self,
        *,
        after: LogPosition | str | int | None = None,
        types: Iterable[type[Event]] | None = None,
        transport: Literal["sse", "grpc"] = "sse",
        give_up_after: float | None = None,
    ) -> AsyncEventStream:
        """The account's events after a position that was stored (0: from the beginning), or from now on.

        `types` are classes such as `tip_client.Fill`; all without any. `give_up_after` is how many seconds it may be
        without a connection before the failure is raised; for ever by default.
        """
        cursor = Cursor(None if after is None else LogPosition.of(after), give_up_after)
        source = self._source(transport, subscriptions(types))
        return AsyncEventStream(source, cursor, renews=callable(self._http.settings.token))

    async def open_streams(self) -> OpenStreams:
        """How many event streams of the account are open, of all callers and at all gateways together."""
        return await self._http.call(get(self._path("/events/streams"), OpenStreams))

    def _source(self, transport: str, types: tuple[str, ...]) -> AsyncSource:
        if transport == "sse":
            return AsyncServerSentSource(self._http, self.account_id, types)
        try:
            from tip_client._async.rpc import AsyncRpcSource
        except ImportError:
            raise ConfigurationError("gRPC is an extra: pip install tip-client[grpc]") from None
        return AsyncRpcSource(self._http.settings, self.account_id, types)
