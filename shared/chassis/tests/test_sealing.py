"""Sealed bytes open under their key, for what they are bound to, unaltered, and not otherwise."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis import config, sealing

KEY, OTHER = os.urandom(32), os.urandom(32)


@given(st.binary(), st.binary())
def test_what_is_sealed_opens_again(plaintext: bytes, bound_to: bytes) -> None:
    assert sealing.unseal(KEY, sealing.seal(KEY, plaintext, bound_to), bound_to) == plaintext


@given(st.binary(max_size=64), st.data())
def test_an_altered_byte_breaks_the_seal(plaintext: bytes, data: st.DataObject) -> None:
    sealed = bytearray(sealing.seal(KEY, plaintext, b"place"))
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= data.draw(st.integers(1, 255))

    with pytest.raises(sealing.BrokenSeal):
        sealing.unseal(KEY, bytes(sealed), b"place")


@pytest.mark.parametrize(("key", "bound_to"), [(OTHER, b"place"), (KEY, b"another")], ids=["key", "place"])
def test_another_key_or_place_breaks_the_seal(key: bytes, bound_to: bytes) -> None:
    with pytest.raises(sealing.BrokenSeal):
        sealing.unseal(key, sealing.seal(KEY, b"secret", b"place"), bound_to)


@pytest.mark.parametrize("sealed", [b"", b"short", b"\x01" * 12])
def test_what_is_no_seal_is_refused(sealed: bytes) -> None:
    with pytest.raises(sealing.BrokenSeal):
        sealing.unseal(KEY, sealed, b"place")


def test_a_new_key_is_a_key() -> None:
    assert sealing.decode_key(f" {base64.b64encode(sealing.new_key()).decode()}\n") != KEY


@pytest.mark.parametrize("text", ["", "short", "!" * 44, "QUJD", "A" * 44 + "="])
def test_a_key_that_is_none_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(config.BadConfiguration, match=r"^LOG_SIGNING_KEY: must be 32 random bytes") as refused:
        config.decode_key(text, "LOG_SIGNING_KEY")

    assert not text or text not in str(refused.value)
