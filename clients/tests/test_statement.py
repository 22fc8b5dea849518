"""A statement proves itself: whatever is changed in it, left out or moved is found."""

import hashlib
import json
from io import BytesIO

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tip import cli
from tip.statement_file import NotVerified, lines_of, verify
from tip.verify import command
from tip_local.home import Home

ACCOUNT, EPOCH = "5b3a7e0e-6c1f-4a3e-9d5f-2f0f6a1d9c11", "0d9cbb46-7c1b-4f0e-8f59-6f4d8f1d2a10"
SIGNED_AT = "2026-01-05T12:00:09.000000Z"
SINCE = "2026-01-05T12:00:02.000000Z"
KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2))
KEYS = {"ab12": KEY.public_key().public_bytes_raw()}


def line(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def content(number, **more):
    return {"account_id": ACCOUNT, "created_at": f"2026-01-05T12:00:0{number}.000000Z", **more}


def statement(contents, *, after=0, since=None, key=KEY, account=ACCOUNT):
    """Written by hand from docs/statement.md."""
    previous = bytes(32) if after == 0 else hashlib.sha256(b"before").digest()
    opening = {"sequence": after, "hash": previous.hex()}
    lines = [line({"statement": 1, "account_id": ACCOUNT, "from": since, "to": None, "opening": opening})]
    for sequence, entry in enumerate(contents, after + 1):
        text = json.dumps(entry, ensure_ascii=False)
        digest = hashlib.sha256(text.encode()).digest()
        link = hashlib.sha256(previous + sequence.to_bytes(8, "big") + digest).digest()
        place = f'{{"sequence":{sequence},"previous_hash":"{previous.hex()}","hash":"{link.hex()}","content":{text}}}\n'
        lines.append(place.encode())
        previous = link
    sequence = after + len(contents)
    message = "\n".join(("tip signed head 1", account, EPOCH, str(sequence), previous.hex(), SIGNED_AT[:-1] + "+00:00"))
    head = {
        "account_id": account, "epoch": EPOCH, "sequence": sequence, "hash": previous.hex(), "signed_at": SIGNED_AT,
        "key_id": "ab12", "signature": key.sign(message.encode()).hex(),
    }  # fmt: skip
    return [*lines, line({"signed_head": head, "sha256": hashlib.sha256(b"".join(lines)).hexdigest()})]


def verified(lines):
    return verify(lines_of(BytesIO(b"".join(lines))), KEYS)


def is_verified(file):
    try:
        verify(lines_of(BytesIO(file)), KEYS)
    except NotVerified:
        return False
    return True


FILE = statement([content(1, command="CREATE"), content(2, payload={"é": "ü"}), content(3)], after=7, since=SINCE)


def test_a_statement_says_what_it_proves():
    assert verified(FILE) == (ACCOUNT, 3, 8, 10, EPOCH, SIGNED_AT, "ab12", SINCE, None)


def test_a_change_of_any_byte_is_found():
    whole = b"".join(FILE)

    unnoticed = [
        (place, other)
        for place, byte in enumerate(whole)
        for other in {byte ^ 1, byte ^ 0x20, 0x0A, 0x20, 0x30} - {byte}
        if is_verified(whole[:place] + bytes([other]) + whole[place + 1 :])
    ]

    assert unnoticed == []


CONTENTS = st.lists(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5) | st.none() | st.integers(), max_size=3).map(
        lambda more: more | content(1)
    ),
    min_size=1,
    max_size=5,
)


@given(CONTENTS, st.integers(0, 2**40), st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_is_done_to_a_statement_is_found(contents, after, data):
    lines = statement(contents, after=after, since=SINCE if after else None)
    assert verified(lines).entries == len(contents)
    whole = b"".join(lines)
    place = data.draw(st.integers(0, len(whole) - 1))
    number = data.draw(st.integers(0, len(lines) - 1))
    changed = {
        "byte": whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :],
        "left out": whole[:place] + whole[place + 1 :],
        "added": whole[:place] + data.draw(st.binary(min_size=1, max_size=3)) + whole[place:],
        "truncated": whole[:place],
        "continued": whole + data.draw(st.binary(min_size=1, max_size=3)),
        "line left out": b"".join(lines[:number] + lines[number + 1 :]),
        "line twice": b"".join(lines[: number + 1] + lines[number:]),
        "lines swapped": b"".join([*lines[: number - 1], lines[number], lines[number - 1], *lines[number + 1 :]]),
    }
    assert [how for how, file in changed.items() if file != whole and is_verified(file)] == []


def resealed(lines):
    """What somebody has without a key: other lines before the signed head, and their checksum made anew."""
    closing = json.loads(lines[-1])
    return [*lines[:-1], line(closing | {"sha256": hashlib.sha256(b"".join(lines[:-1])).hexdigest()})]


def opened_after(lines, count):
    """The statement without its first entries, as if it began after them."""
    last = json.loads(lines[count])
    header = json.loads(lines[0])
    opening = {"sequence": last["sequence"], "hash": last["hash"]}
    return resealed([line(header | {"opening": opening}), *lines[count + 1 :]])


WHOLE = statement([content(1), content(2), content(3)])

FORGERIES = {
    "without its first entry": (opened_after(WHOLE, 1), "does not begin with the first entry of the log"),
    "without any entry": (opened_after(WHOLE, 3), "does not begin with the first entry of the log"),
    "emptied": (opened_after(statement([content(1), content(2)], after=7, since=SINCE), 2), "holds no entry"),
    "of another key": (statement([content(1)], key=OTHER), "the signature does not hold"),
    "a head of another account": (statement([content(1)], account=EPOCH), "does not end with what was signed"),
    "an entry of another account": (statement([content(1, account_id=EPOCH)]), "of another account"),
    "no moment": (statement([{"account_id": ACCOUNT}]), "no moment"),
    "begins in its period": (
        statement([content(2)], after=1, since="2026-01-05T12:00:01.000000Z"),
        "entries are missing between `from` and the first one",
    ),
    "nothing": ([], "not the first line"),
    "one long line": ([FILE[0][:-1] * 9000], "not the first line"),
    "entries cut off": ([FILE[0], FILE[1], FILE[-1]], "were altered"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_found(forgery):
    lines, reason = FORGERIES[forgery]

    with pytest.raises(NotVerified, match=reason):
        verified(lines)


def test_the_last_entry_before_its_period_shows_that_none_is_missing_after_it():
    since = "2026-01-05T12:00:02.000000Z"

    assert verified(statement([content(1), content(2)], after=1, since=since)).entries == 2
    assert verified(statement([content(3)], since=since)).entries == 1  # the log begins with it


@pytest.fixture
def tip_verify(tmp_path):
    """`tip verify` of a file with these lines and options."""

    def run(lines, *options):
        file = tmp_path / "statement.jsonl"
        file.write_bytes(b"".join(lines))
        return CliRunner().invoke(command, [str(file), *options])

    return run


@pytest.fixture
def keys(tmp_path):
    file = tmp_path / "keys.json"
    x = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"
    file.write_text(json.dumps({"keys": [{"kty": "RSA"}, {"kid": "ab12", "crv": "Ed25519", "x": x}]}))
    return str(file)


def test_tip_verify_checks_a_statement_with_the_published_keys(tip_verify, keys):
    good, bad = tip_verify(FILE, "--keys", keys), tip_verify(FILE[:-1], "--keys", keys)

    assert (good.exit_code, bad.exit_code) == (0, 3)
    assert f"3 entries of account {ACCOUNT} verified, sequence 8 to 10, for the period from {SINCE}" in good.output
    assert f"to the end; attested at {SIGNED_AT}" in good.output
    assert "BROKEN at line 5: the file ends without a signed head" in bad.output


def test_tip_verify_of_a_statement_needs_keys(tip_verify, keys):
    assert "/.well-known/log-jwks.json" in tip_verify(FILE).output
    assert tip_verify(FILE).exit_code == 2
    assert tip_verify(FILE, "--keys", keys, "--public-key", "00").exit_code == 2
    missing = str(tip_verify(FILE, "--keys", "nowhere.json").exception)
    assert missing == "no keys can be read from nowhere.json: No such file or directory"


def test_a_key_that_is_not_given_verifies_nothing(tip_verify):
    answer = tip_verify(FILE, "--public-key", "00" * 32)

    assert answer.exit_code == 3
    assert "a key that is not among the given ones" in answer.output


def test_the_key_of_the_logs_is_rotated_and_no_other_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("TIP_HOME", str(tmp_path / "home"))
    home = Home(tmp_path / "home")
    home.create()
    before = home.secrets()

    assert CliRunner().invoke(cli.main, ["log-keys", "rotate"]).exit_code == 0

    assert {name for name, value in home.secrets().items() if value != before[name]} == {"log_signing_key"}
