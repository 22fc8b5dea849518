# Made from _async/client.py by generate.py; `make client` makes it anew.
"""The client: everything the platform does, for one caller."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, Self

from tip_client._sync.accounts import Accounts, Credentials
from tip_client._sync.controls import Controls
from tip_client._sync.holdings import Holdings
from tip_client._sync.http import Http
from tip_client._sync.identity import Keys, Me, Organizations, ServiceAccounts
from tip_client._sync.server_sent import ServerSentSource
from tip_client._sync.stream import EventStream, Source
from tip_client._sync.trading import Trading
from tip_client.cursor import Cursor
from tip_client.discovery import API_DOCUMENT, platform_info
from tip_client.errors import ConfigurationError
from tip_client.events import Event, LogPosition, subscriptions
from tip_client.models.platform import PlatformInfo
from tip_client.models.streams import OpenStreams
from tip_client.request import get
from tip_client.settings import Settings


class Client(Trading, Holdings):
    """A client of the platform: `Client.from_env()`, or with an address and a credential.

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
        super().__init__(Http(made), made.account)

    @classmethod
    def from_env(cls, profile: str | None = None) -> Self:
        """From `TIP_URL`, `TIP_KEY` and `TIP_ACCOUNT`, and what these leave open from a profile of the user's."""
        return cls(settings=Settings.from_env(profile))

    def for_account(self, account_id: str) -> Self:
        """The same client, for another account."""
        other = type(self).__new__(type(self))
        Trading.__init__(other, self._http, account_id)
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def platform(self) -> PlatformInfo:
        """Version, speed and clock of the platform, by one request that needs no credential and is not repeated."""
        document, date, seconds = self._http.probe(API_DOCUMENT.path)
        return platform_info(document, date, seconds, datetime.now(UTC))

    @cached_property
    def accounts(self) -> Accounts:
        """Trading accounts, brokers, the outbox."""
        return Accounts(self._http, self._account)

    @cached_property
    def credentials(self) -> Credentials:
        """Broker credentials of the account."""
        return Credentials(self._http, self._account)

    @cached_property
    def controls(self) -> Controls:
        """What may be traded, when, how much, and whether at all."""
        return Controls(self._http, self._account)

    @cached_property
    def organizations(self) -> Organizations:
        """Organizations, their members and entitlements."""
        return Organizations(self._http, self._account)

    @cached_property
    def keys(self) -> Keys:
        """API keys of the organization."""
        return Keys(self._http, self._account)

    @cached_property
    def service_accounts(self) -> ServiceAccounts:
        """Service accounts, for operators."""
        return ServiceAccounts(self._http, self._account)

    @cached_property
    def me(self) -> Me:
        """Whoever calls."""
        return Me(self._http, self._account)

    def events(
        self,
        *,
        after: LogPosition | str | int | None = None,
        types: Iterable[type[Event]] | None = None,
        transport: Literal["sse", "grpc"] = "sse",
        give_up_after: float | None = None,
    ) -> EventStream:
        """The account's events after a position that was stored (0: from the beginning), or from now on.

        `types` are classes such as `tip_client.Fill`; all without any. `give_up_after` is how many seconds it may be
        without a connection before the failure is raised; for ever by default.
        """
        cursor = Cursor(None if after is None else LogPosition.of(after), give_up_after)
        source = self._source(transport, subscriptions(types))
        return EventStream(source, cursor, renews=callable(self._http.settings.token))

    def open_streams(self) -> OpenStreams:
        """How many event streams of the account are open, of all callers and at all gateways together."""
        return self._http.call(get(self._path("/events/streams"), OpenStreams))

    def _source(self, transport: str, types: tuple[str, ...]) -> Source:
        if transport == "sse":
            return ServerSentSource(self._http, self.account_id, types)
        try:
            from tip_client._sync.rpc import RpcSource
        except ImportError:
            raise ConfigurationError("gRPC is an extra: pip install tip-client[grpc]") from None
        return RpcSource(self._http.settings, self.account_id, types)
