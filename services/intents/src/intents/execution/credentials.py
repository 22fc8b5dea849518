"""The key pair of an account: from the vault, or for the platform's own paper broker made from the account's id.

An order belongs to the account at the broker under which it was sent. Another credential may open another account
there, where nothing is known of the order: so it is queried, changed and resent only with a key pair that opens the
same one (`bound`).
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Engine

import credential_vault
import tip_brokers
from chassis.outbox import Event, Outbox
from chassis.worker.outage import outage_as
from intents.execution.model.commands import DERIVED, LeasedCommand
from intents.execution.store import credentials as store
from intents.model.events import CREDENTIAL_INVALID, CREDENTIAL_TESTED, CREDENTIAL_VALID
from tip_brokers import Broker

CACHE_SECONDS = 2.0
ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"
"""What comes of a test that was requested."""


class NoCredential(Exception):
    """The account has no credential that may be used."""


class CredentialInvalid(Exception):
    """The account's credential is known to be refused by the broker."""


class CredentialPending(NoCredential):
    """The account's credential is on its way into the vault, or the broker has not accepted it yet."""


class CredentialChanged(Exception):
    """The account has another credential than the claim has recorded."""


class VaultDown(Exception):
    """The secret is out of reach for now."""


class KeyPair(NamedTuple):
    """`reference` names the credential and its version, so that a refused one differs from its successor."""

    reference: str
    credential_id: UUID | None
    secret: Mapping[str, str]

    def __repr__(self) -> str:
        return f"KeyPair({self.reference})"


class UntestedCredential(NamedTuple):
    """One that is new, or that is to be tested again."""

    row: Any
    reference: str
    is_new: bool
    test_id: UUID | None


def derived(account_id: UUID, paper_secret: str) -> dict[str, str]:
    """For a paper account without a credential: a pair of its own at our paper broker, known to nobody else."""
    made = hmac.new(paper_secret.encode(), account_id.bytes, hashlib.sha256).hexdigest()
    return {"key_id": str(account_id), "secret_key": made}


@dataclass
class Credentials:
    """Looks up key pairs and caches them: until a claim names another, or else for a few seconds."""

    engine: Engine
    paper_secret: str
    keyring: credential_vault.Keyring | None = None
    remote: credential_vault.Vault | None = None
    _cached: dict[UUID, tuple[float, KeyPair]] = field(default_factory=dict, init=False)
    _logins: dict[tuple[UUID, str], str] = field(default_factory=dict, init=False)

    def of(self, command: LeasedCommand) -> KeyPair:
        """The pair of the credential that the claim found to be the account's."""
        cached = self._cached.get(command.account_id)
        if cached and cached[1].reference == (command.credential or DERIVED):
            return cached[1]
        return self._look_up(command.account_id, command.broker or "")

    def pair(self, account_id: UUID, broker: str) -> KeyPair:
        now = time.monotonic()
        cached = self._cached.get(account_id)
        if cached and cached[0] > now:
            return cached[1]
        return self._look_up(account_id, broker)

    def untested(self, account_id: UUID) -> list[UntestedCredential]:
        """Those that no broker has accepted or refused yet, and those of which a test was requested."""
        with self._connected() as tx:
            rows = store.untested_credentials(tx, account_id)
        return [UntestedCredential(row, _reference(row), row.status == "pending", row.test_id) for row in rows]

    def reveal(self, credential: UntestedCredential) -> KeyPair:
        return self._revealed(credential.row)

    def accepted(self, account_id: UUID, pair: KeyPair) -> None:
        """Use the pair from now on if it is the account's best, also before accounts has received that."""
        with self._connected() as tx:
            is_best = store.is_best(tx, account_id, pair.reference)
        if is_best:
            self._cached[account_id] = (time.monotonic() + CACHE_SECONDS, pair)

    def forget(self, account_id: UUID) -> None:
        self._cached.pop(account_id, None)

    def _look_up(self, account_id: UUID, broker: str) -> KeyPair:
        found = self._find(account_id, broker)
        self._cached[account_id] = (time.monotonic() + CACHE_SECONDS, found)
        return found

    def broker_account(self, account_id: UUID, pair: KeyPair, broker: Broker) -> str:
        """The account at the broker which the pair opens. Known for good before anything is sent with the pair."""
        key = (account_id, pair.reference)
        if key not in self._logins:
            self._logins[key] = self._recorded_login(*key) or self._log_in(account_id, pair, broker)
        return self._logins[key]

    def bound(self, account_id: UUID, broker: str, reference: str) -> Iterator[KeyPair]:
        """Pairs that may open the account where something was sent under `reference`; the likeliest first."""
        if reference == DERIVED:
            yield self._derived(account_id)
            return
        same = self._usable(lambda: self._of_id(account_id, reference))
        if same:
            yield same
        best = self._usable(lambda: self._look_up(account_id, broker))
        if best and (same is None or best.reference != same.reference):
            yield best

    def opening(self, account_id: UUID, broker_account: str) -> list[str]:
        """References of credentials that were seen to open this account at the broker; the newest first."""
        with self._connected() as tx:
            return store.logins_of(tx, account_id, broker_account)

    def forget_login(self, account_id: UUID, pair: KeyPair) -> None:
        """What is cached here is not recorded any more: the log was restored to an earlier state."""
        self._logins.pop((account_id, pair.reference), None)

    def _usable(self, look_up: Callable[[], KeyPair]) -> KeyPair | None:
        """None if it never will be; one that is on its way into the vault is waited for."""
        try:
            return look_up()
        except CredentialPending:
            raise
        except (NoCredential, CredentialInvalid):
            return None

    def _recorded_login(self, account_id: UUID, reference: str) -> str | None:
        with self._connected() as tx:
            return store.recorded_login(tx, account_id, reference)

    def _log_in(self, account_id: UUID, pair: KeyPair, broker: Broker) -> str:
        opened = broker.account_id()
        with self._connected() as tx:
            store.record_login(tx, account_id, pair.reference, opened)
            store.hold_account(tx, account_id, pair.reference, opened)
        return opened

    def hold(self, account_id: UUID, reference: str, broker_account: str) -> None:
        """Let what is held in this account at the broker count, if the credential is the account's best."""
        with self._connected() as tx:
            store.hold_account(tx, account_id, reference, broker_account)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with outage_as(VaultDown), self.engine.begin() as tx:
            yield tx

    def _find(self, account_id: UUID, broker: str) -> KeyPair:
        with self._connected() as tx:
            row = store.best_credential(tx, account_id)
        if row is None and not _needs_credential(broker):
            return self._derived(account_id)
        return self._pair_of(row)

    def _of_id(self, account_id: UUID, reference: str) -> KeyPair:
        with self._connected() as tx:
            return self._pair_of(store.credential_by_id(tx, account_id, reference.partition(":")[0]))

    def _derived(self, account_id: UUID) -> KeyPair:
        return KeyPair(DERIVED, None, derived(account_id, self.paper_secret))

    def _pair_of(self, row: Any) -> KeyPair:
        if row is not None and row.status == "invalid":
            raise CredentialInvalid
        if row is not None and row.status == "pending":
            raise CredentialPending
        if row is None or row.status != "active":
            raise NoCredential
        return self._revealed(row)

    def _revealed(self, row: Any) -> KeyPair:
        return KeyPair(_reference(row), row.id, self._secret(row))

    def _secret(self, row: Any) -> Mapping[str, str]:
        path = credential_vault.SecretPath(row.organization_id, row.account_id, row.id, row.vault_version)
        try:
            if self.remote is not None:
                return self.remote.get(path).reveal()
            if self.keyring is None or row.key_id is None:
                raise NoCredential
            envelope = credential_vault.Envelope(row.key_id, bytes(row.wrapped_key), bytes(row.ciphertext))
            return credential_vault.open_object(self.keyring, path, envelope).reveal()
        except credential_vault.Unavailable:
            raise VaultDown from None
        except credential_vault.Refused:
            raise NoCredential from None


def _reference(row: Any) -> str:
    return f"{row.id}:{row.vault_version}"


def _needs_credential(broker: str) -> bool:
    described = tip_brokers.installed().get(broker)
    return described is None or described.needs_credential


def report_refused(outbox: Outbox, account_id: UUID, pair: KeyPair) -> None:
    """Accounts owns the credential: an event, once for each version, lets it mark the credential itself."""
    if pair.credential_id is None:
        return
    with outbox.begin() as tx:
        if store.record_refused(tx, account_id, pair.reference):
            outbox.append(tx, _event(CREDENTIAL_INVALID, account_id, pair))


def report_accepted(outbox: Outbox, account_id: UUID, pair: KeyPair) -> None:
    """The same of a credential that has passed its test."""
    with outbox.begin() as tx:
        outbox.append(tx, _event(CREDENTIAL_VALID, account_id, pair))


def report_tested(outbox: Outbox, account_id: UUID, credential: UntestedCredential, outcome: str) -> None:
    """What came of a test that was requested."""
    payload = {**_about(account_id, credential.reference), "test_id": str(credential.test_id), "outcome": outcome}
    with outbox.begin() as tx:
        if outcome == ACCEPTED:
            store.forget_refused(tx, account_id, credential.reference)
        outbox.append(tx, Event(CREDENTIAL_TESTED, payload))


def _event(event_type: str, account_id: UUID, pair: KeyPair) -> Event:
    return Event(event_type, _about(account_id, pair.reference))


def _about(account_id: UUID, reference: str) -> dict[str, Any]:
    credential_id, _, version = reference.rpartition(":")
    return {"account_id": str(account_id), "credential_id": credential_id, "version": int(version)}
