"""Envelopes: bound to their path, re-wrapped without being opened, refused when anything about them was changed."""

import os
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credential_vault import BrokenSeal, Envelope, Keyring, Secret, SecretPath, UnknownKey, open_object

OLD, NEW = os.urandom(32), os.urandom(32)
PATH = SecretPath(uuid4(), uuid4(), uuid4(), 2)
SECRET = Secret({"key_id": "PK1", "secret_key": "s3cret"})


def test_nothing_of_the_secret_is_in_the_envelope() -> None:
    envelope = Keyring(NEW).seal("vault", PATH, SECRET)

    assert b"s3cret" not in envelope.ciphertext + envelope.wrapped_key
    assert "ciphertext" not in repr(envelope)


def test_sealing_twice_gives_different_bytes() -> None:
    first, second = (Keyring(NEW).seal("vault", PATH, SECRET) for _ in range(2))

    assert first.ciphertext != second.ciphertext and first.wrapped_key != second.wrapped_key


@pytest.mark.parametrize(
    "other",
    [
        replace(PATH, organization_id=uuid4()),
        replace(PATH, account_id=uuid4()),
        replace(PATH, credential_id=uuid4()),
        replace(PATH, version=1),
        replace(PATH, version=3),
    ],
    ids=["organization", "account", "credential", "rolled back", "rolled forward"],
)
def test_moved_to_another_path_it_does_not_open(other: SecretPath) -> None:
    keyring = Keyring(NEW)

    with pytest.raises(BrokenSeal):
        keyring.open("vault", other, keyring.seal("vault", PATH, SECRET))


def test_sealed_for_one_purpose_it_does_not_open_for_another() -> None:
    keyring = Keyring(NEW)

    with pytest.raises(BrokenSeal):
        open_object(keyring, PATH, keyring.seal("request", PATH, SECRET))


def test_a_data_key_of_one_envelope_does_not_open_another() -> None:
    keyring = Keyring(NEW)
    first, second = (keyring.seal("vault", PATH, SECRET) for _ in range(2))

    with pytest.raises(BrokenSeal):
        keyring.open("vault", PATH, replace(first, wrapped_key=second.wrapped_key))


@given(part=st.sampled_from(["wrapped_key", "ciphertext"]), bit=st.integers(0, 10_000))
def test_one_bit_changed_and_it_does_not_open(part: str, bit: int) -> None:
    keyring = Keyring(NEW)
    envelope = keyring.seal("vault", PATH, SECRET)
    altered = bytearray(getattr(envelope, part))
    altered[bit // 8 % len(altered)] ^= 1 << bit % 8

    with pytest.raises(BrokenSeal):
        keyring.open("vault", PATH, replace(envelope, **{part: bytes(altered)}))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_other_bytes_do_not_open(wrapped: bytes, ciphertext: bytes) -> None:
    keyring = Keyring(NEW)

    with pytest.raises(BrokenSeal):
        keyring.open("vault", PATH, Envelope(keyring.current_id, wrapped, ciphertext))


@given(st.dictionaries(st.text(), st.text()))
def test_any_secret_comes_back_as_it_was(fields: dict[str, str]) -> None:
    keyring = Keyring(NEW)

    assert keyring.open("vault", PATH, keyring.seal("vault", PATH, Secret(fields))).reveal() == fields


def test_while_keys_change_both_open_and_new_envelopes_use_the_new_one() -> None:
    old, both, new = Keyring(OLD), Keyring(NEW, [OLD]), Keyring(NEW)
    before = old.seal("vault", PATH, SECRET)
    during = both.seal("vault", PATH, SECRET)

    assert both.open("vault", PATH, before) == both.open("vault", PATH, during) == SECRET
    assert new.open("vault", PATH, during) == SECRET
    with pytest.raises(UnknownKey):
        new.open("vault", PATH, before)


def test_rewrapped_it_opens_under_the_new_key_alone_and_its_ciphertext_is_the_same() -> None:
    before = Keyring(OLD).seal("vault", PATH, SECRET)

    after = Keyring(NEW, [OLD]).rewrap("vault", PATH, before)

    assert after.ciphertext == before.ciphertext
    assert Keyring(NEW).open("vault", PATH, after) == SECRET
    with pytest.raises(UnknownKey):
        Keyring(OLD).open("vault", PATH, after)


def test_rewrapping_does_not_make_a_moved_envelope_good() -> None:
    before = Keyring(OLD).seal("vault", PATH, SECRET)

    with pytest.raises(BrokenSeal):
        Keyring(NEW, [OLD]).rewrap("vault", replace(PATH, version=9), before)


@pytest.mark.parametrize("text", ["", "short", "QUJD"])
def test_a_keyring_of_something_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        Keyring.from_text(text)
