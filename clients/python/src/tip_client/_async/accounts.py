"""Trading accounts, their credentials, the brokers, and the outbox."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from tip_client._async.scope import AsyncScope
from tip_client.models.accounts import Account, Broker, Brokers, Credential, FailedOutboxRow, OutboxHealth
from tip_client.request import Request, at, change, create, delete, get, given, listed
from tip_client.words import Environment


class AsyncAccounts(AsyncScope):
    """Trading accounts of the organization."""

    async def list(self, *, page_size: int | None = None) -> AsyncIterator[Account]:
        """All that the caller may see, oldest first."""
        async for account in self._http.pages(listed("/v1/accounts", Account, page_size)):
            yield account

    async def create(
        self,
        name: str,
        *,
        broker: str,
        environment: Environment | str,
        broker_account_id: str | None = None,
        time_zone: str | None = None,
        flatten_excess: bool | None = None,
    ) -> Account:
        """Create a trading account at an installed broker."""
        about = given(broker_account_id=broker_account_id, time_zone=time_zone, flatten_excess=flatten_excess)
        body = {"name": name, "broker": broker, "environment": environment, **about}
        return await self._http.call(create("/v1/accounts", Account, body))

    async def read(self, account_id: str) -> Account:
        return await self._http.call(get(at("/v1/accounts/{}", account_id), Account))

    async def change(
        self,
        account_id: str,
        *,
        name: str | None = None,
        broker_account_id: str | None = None,
        time_zone: str | None = None,
        flatten_excess: bool | None = None,
        if_match: int | None = None,
    ) -> Account:
        """Change what is given; with `if_match` only if that is still its version."""
        body = given(name=name, broker_account_id=broker_account_id, time_zone=time_zone, flatten_excess=flatten_excess)
        return await self._http.call(change("PATCH", at("/v1/accounts/{}", account_id), Account, body, if_match))

    async def disable(self, account_id: str, *, reason: str | None = None, if_match: int | None = None) -> Account:
        """Refuse its orders from now on."""
        path = at("/v1/accounts/{}/disable", account_id)
        return await self._http.call(change("POST", path, Account, given(reason=reason), if_match))

    async def enable(self, account_id: str, *, if_match: int | None = None) -> Account:
        path = at("/v1/accounts/{}/enable", account_id)
        return await self._http.call(change("POST", path, Account, {}, if_match))

    async def delete(self, account_id: str, *, cancel_open: bool = False, if_match: int | None = None) -> None:
        """Delete it; with `cancel_open` its orders are canceled first, and it is deleted when the last has ended."""
        request: Request[None] = delete(at("/v1/accounts/{}", account_id), if_match)
        query = {"cancel_open": "true"} if cancel_open else {}
        await self._http.call(replace(request, query=query))

    async def brokers(self) -> tuple[Broker, ...]:
        """The brokers that are installed, and what they can do."""
        return (await self._http.call(get("/v1/brokers", Brokers))).data

    async def outbox_health(self) -> OutboxHealth:
        """How the outbox is doing, for operators."""
        return await self._http.call(get("/v1/accounts/outbox/health", OutboxHealth))

    async def failed_outbox_rows(
        self, *, redriven: bool | None = None, page_size: int | None = None
    ) -> AsyncIterator[FailedOutboxRow]:
        """Outbox rows that failed, oldest first, for operators; with `redriven` those driven again, or those not."""
        path = "/v1/accounts/outbox/failed"
        async for row in self._http.pages(listed(path, FailedOutboxRow, page_size, redriven=redriven)):
            yield row

    async def redrive_outbox_row(self, row_id: int) -> FailedOutboxRow:
        """Drive a failed row again, as a copy. A row has one copy: a repetition changes nothing."""
        path = at("/v1/accounts/outbox/failed/{}/redrive", str(row_id))
        return await self._http.call(change("POST", path, FailedOutboxRow))


class AsyncCredentials(AsyncScope):
    """Broker credentials of one account."""

    async def list(self, *, page_size: int | None = None) -> AsyncIterator[Credential]:
        """Oldest first, without their secrets."""
        async for credential in self._http.pages(listed(self._path("/credentials"), Credential, page_size)):
            yield credential

    async def add(self, label: str, secret: Mapping[str, str]) -> Credential:
        """Add a credential; what its secret is made of, the broker says: `accounts.brokers()`."""
        body = {"label": label, "secret": dict(secret)}
        return await self._http.call(create(self._path("/credentials"), Credential, body))

    async def read(self, credential_id: str) -> Credential:
        return await self._http.call(get(self._path("/credentials/{}", credential_id), Credential))

    async def rotate(self, credential_id: str, secret: Mapping[str, str], *, if_match: int | None = None) -> Credential:
        """Put another secret in place of the former."""
        path, body = self._path("/credentials/{}/secret", credential_id), {"secret": dict(secret)}
        return await self._http.call(change("PUT", path, Credential, body, if_match))

    async def test(self, credential_id: str) -> Credential:
        """Have the platform log in at the broker with the stored secret; `read` shows what came of it."""
        path = self._path("/credentials/{}/test", credential_id)
        return await self._http.call(change("POST", path, Credential))

    async def delete(self, credential_id: str, *, if_match: int | None = None) -> None:
        await self._http.call(delete(self._path("/credentials/{}", credential_id), if_match))
