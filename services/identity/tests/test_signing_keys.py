"""The keys that sign our tokens: rotated, retired, resealed."""

import base64
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jose import jwt
from sqlalchemy import text

from chassis.sealing import BrokenSeal
from identity import model, usecases
from identity.app import create_app
from identity.signing import Signer
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]


def test_a_rotated_key_signs_only_after_everyone_can_have_seen_it_and_refuses_no_valid_token(
    fresh_platform: Platform, as_bearer: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The verifiers' cooldown passes in life before the new key first signs.
    monkeypatch.setattr("chassis.authentication._LOCAL_KEYS_COOLDOWN_S", 0.0)
    identity = IdentityFixtures(fresh_platform.administrator_environment("identity"))
    verifiers = [create_app(fresh_platform.web_environment(name)).test_client() for name in ("identity", "identity")]
    account = identity.service_account(["intent:read"])
    before = account.token
    assert all(_status(client, before, as_bearer) == 200 for client in verifiers)  # the old keys are in the cache

    new_kid = usecases.rotate_signing_keys(identity.deps)
    at_once = identity.service_token(account.client_id, ["intent:read"])
    _age_keys(fresh_platform, seconds=10)
    later = identity.service_token(account.client_id, ["intent:read"])

    assert jwt.get_unverified_header(at_once)["kid"] == jwt.get_unverified_header(before)["kid"] != new_kid
    assert jwt.get_unverified_header(later)["kid"] == new_kid
    for client in verifiers:
        assert [_status(client, token, as_bearer) for token in (before, at_once, later)] == [200, 200, 200]
    identity.close()


def test_an_old_key_goes_when_nothing_signed_with_it_can_still_be_valid(fresh_platform: Platform) -> None:
    identity = IdentityFixtures(fresh_platform.administrator_environment("identity"), token_lifetime_s=7 * 24 * 3600)
    usecases.issue_token(identity.deps, {"sub": "short"})
    [old] = usecases.public_keys(identity.deps)
    usecases.rotate_signing_keys(identity.deps)

    _age_keys(fresh_platform, seconds=3_000)
    assert usecases.retire_signing_keys(identity.deps) == []
    _age_keys(fresh_platform, seconds=1_000)
    assert usecases.retire_signing_keys(identity.deps) == [old["kid"]]

    assert old not in usecases.public_keys(identity.deps)
    identity.close()


def test_a_key_stays_as_long_as_its_longest_token(fresh_platform: Platform) -> None:
    identity = IdentityFixtures(fresh_platform.administrator_environment("identity"), token_lifetime_s=7 * 24 * 3600)
    identity.user_token("somebody")
    usecases.rotate_signing_keys(identity.deps)
    _age_keys(fresh_platform, seconds=6 * 24 * 3600)

    assert usecases.retire_signing_keys(identity.deps) == []
    identity.close()


def test_two_processes_that_find_no_key_make_one(fresh_platform: Platform) -> None:
    identities = [IdentityFixtures(fresh_platform.administrator_environment("identity")) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda identity: identity.user_token("somebody"), identities))

    assert len(usecases.public_keys(identities[0].deps)) == 1
    for identity in identities:
        identity.close()


OPEN_TRANSACTIONS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
"""


@pytest.mark.parametrize("need", ["a token", "the public keys"])
def test_no_transaction_is_open_while_the_first_key_is_made(
    fresh_platform: Platform, monkeypatch: pytest.MonkeyPatch, need: str
) -> None:
    """On a busy machine that takes longer than Postgres lets one be idle."""
    with fresh_platform.admin() as admin:
        admin.execute(text("DELETE FROM identity.signing_key"))
    found: list[int] = []
    generate = Signer.generate

    def noting(signer: Signer) -> Any:
        with fresh_platform.admin() as admin:
            found.append(admin.execute(text(OPEN_TRANSACTIONS)).scalar_one())
        return generate(signer)

    monkeypatch.setattr(Signer, "generate", noting)
    with closing(IdentityFixtures(fresh_platform.administrator_environment("identity"))) as identity:
        if need == "a token":
            identity.user_token("somebody")
        else:
            usecases.public_keys(identity.deps)

    assert found == [0]


def test_after_a_change_of_key_and_reseal_the_old_key_opens_nothing_and_the_new_one_everything(
    fresh_platform: Platform,
) -> None:
    def identity(*keys: str) -> IdentityFixtures:
        change = {"SIGNING_KEY_ENCRYPTION_KEY": keys[0], "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS": ",".join(keys[1:])}
        return IdentityFixtures(fresh_platform.administrator_environment("identity", **change))

    old, new = fresh_platform.signing_key, base64.b64encode(secrets.token_bytes(32)).decode()
    with closing(identity(old)) as before, closing(identity(new, old)) as between:
        token = before.user_token("somebody")
        retired = usecases.rotate_signing_keys(before.deps)
        with fresh_platform.admin() as connection:  # a retired key is sealed, too
            connection.execute(
                text("UPDATE identity.signing_key SET retired_at = now() WHERE kid = :kid"), {"kid": retired}
            )
        assert _kid(between.user_token("somebody")) == _kid(token), "both open while the key is being changed"
        assert usecases.reseal_signing_keys(between.deps) == model.Resealed(2, ())
        assert usecases.reseal_signing_keys(between.deps) == model.Resealed(0, ())

    with closing(identity(new)) as after, closing(identity(old)) as late:
        assert _kid(after.user_token("somebody")) == _kid(token)
        with pytest.raises(BrokenSeal):
            late.user_token("somebody")
        unopened = usecases.reseal_signing_keys(late.deps)
        assert (unopened.count, set(unopened.unopened)) == (0, {retired, _kid(token)})


def _kid(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIFETIME = timedelta(hours=1)
ages = st.lists(st.integers(0, 10_000), min_size=1, max_size=6, unique=True)


@given(ages)
def test_whatever_the_rotation_no_key_is_retired_under_a_valid_token(seconds: list[int]) -> None:
    """The model: replay every second at which a token could have been signed and is still valid."""
    keys = [model.SigningKey(f"k{age}", "RS256", {}, b"", NOW - timedelta(seconds=age)) for age in seconds]
    retired = {key.kid for key in model.no_longer_needed(keys, NOW, LIFETIME)}
    for ago in range(0, int(LIFETIME.total_seconds()) + 30, 7):
        moment = NOW - timedelta(seconds=ago)
        known = [key for key in keys if key.created_at <= moment]
        signing = model.signing_now(known, moment)
        assert signing is None or signing.kid not in retired
    assert len(retired) < len(keys)


def _status(client: Any, token: str, as_bearer: Bearer) -> int:
    return int(client.get("/v1/auth/self", headers=as_bearer(token)).status_code)


def _age_keys(platform: Platform, seconds: int) -> None:
    with platform.admin() as connection:
        connection.execute(
            text("UPDATE identity.signing_key SET created_at = created_at - make_interval(secs => :seconds)"),
            {"seconds": seconds},
        )
