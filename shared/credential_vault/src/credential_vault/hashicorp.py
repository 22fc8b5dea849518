"""HashiCorp Vault, KV version 2. Each version of a secret has a path of its own, written once, then only destroyed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hvac
import requests
from hvac import exceptions

from credential_vault.envelope import BrokenSeal
from credential_vault.protocol import Destroyed, Missing, Refused, Unavailable
from credential_vault.secret import Secret, SecretPath

TIMEOUT_S = 1.5  # several calls must fit into the five seconds of a claim
_DOWN = (
    OSError,  # the base of everything requests raises, and of a token file that cannot be read
    exceptions.BadGateway,
    exceptions.InternalServerError,
    exceptions.PreconditionFailed,  # a standby that has not caught up
    exceptions.RateLimitExceeded,
    exceptions.UnexpectedError,
    exceptions.VaultDown,
    exceptions.VaultNotInitialized,
)


class Hashicorp:
    """The `Vault` over KV version 2; the token's policy needs create, read and update on its paths.

    `token` is called before every use, so that a renewed token (in an agent's file, say) takes effect.
    """

    def __init__(
        self, address: str, token: Callable[[], str], *, mount: str = "secret", prefix: str = "tip/credentials"
    ) -> None:
        self._client = hvac.Client(url=address, timeout=TIMEOUT_S)
        self._token, self._mount, self._prefix = token, mount, prefix

    def put(self, path: SecretPath, secret: Secret) -> None:
        written = self._create(path, {"path": _described(path), "secret": secret.reveal()})
        if not written and not self.get(path).matches(secret):
            raise Refused("the path holds another secret")

    def get(self, path: SecretPath) -> Secret:
        data = self._read(path)
        if data is None or data.get("destroyed"):
            raise Destroyed
        if data.get("path") != _described(path):
            raise BrokenSeal
        return Secret(data["secret"])

    def destroy(self, path: SecretPath) -> None:
        # A version that was never written gets a tombstone first: a late worker's write must find the path taken.
        self._create(path, {"destroyed": True})
        with self._speaking() as kv:
            kv.destroy_secret_versions(path=self._kv_path(path), versions=[1], mount_point=self._mount)

    def _create(self, path: SecretPath, data: dict[str, Any]) -> bool:
        """Write if nothing is or ever was there; whether it was written."""
        try:
            with self._speaking() as kv:
                kv.create_or_update_secret(self._kv_path(path), data, cas=0, mount_point=self._mount)
        except _AlreadyThere:
            return False
        return True

    def _read(self, path: SecretPath) -> dict[str, Any] | None:
        """What is there, None when it was destroyed."""
        with self._speaking() as kv:
            try:
                found = kv.read_secret_version(
                    self._kv_path(path), mount_point=self._mount, raise_on_deleted_version=True
                )
            except exceptions.InvalidPath as absent:
                if _was_destroyed(absent.json):
                    return None
                raise Missing from None
        data: dict[str, Any] = found["data"]["data"]
        return data

    def _kv_path(self, path: SecretPath) -> str:
        return f"{self._prefix}/{path.credential_id}/{path.version}"

    @contextmanager
    def _speaking(self) -> Iterator[Any]:
        """The client, its errors turned into our words. Theirs are dropped: they may quote what was sent."""
        try:
            self._client.token = self._token()
            yield self._client.secrets.kv.v2
        except _DOWN:
            raise Unavailable from None
        except exceptions.InvalidRequest as error:
            raise (_AlreadyThere if "check-and-set" in str(error) else Refused("invalid_request")) from None
        except (exceptions.Forbidden, exceptions.Unauthorized):
            # A token that is no longer good concerns every object, not this one.
            raise (Refused("forbidden") if self._token_is_good() else Unavailable) from None
        except exceptions.VaultError as error:
            raise Refused(type(error).__name__) from None

    def _token_is_good(self) -> bool:
        try:
            self._client.auth.token.lookup_self()
        except (requests.RequestException, exceptions.VaultError):
            return False
        return True


class _AlreadyThere(Exception):
    """The check-and-set found something."""


def _described(path: SecretPath) -> str:
    return path.binding("hashicorp").decode()


def _was_destroyed(answer: Any) -> bool:
    try:
        return bool(answer["data"]["metadata"]["version"])
    except (KeyError, TypeError):
        return False
