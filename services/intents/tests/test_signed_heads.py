"""Signed heads: a process with a role and a key of its own attests where each log has come to."""

import signal
from base64 import b64encode
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from chassis import db
from intents.model import chain, record
from intents.signing import HeadSigner
from intents.store import page
from intents.usecases import SigningDeps, sign_heads
from tip.verify import command
from tip_testing.commands import create
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running
from tip_testing.waiting import eventually

from .broker_side import accepted
from .conftest import Desk
from .test_chain import as_superuser

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
OURS, OTHERS = (HeadSigner(key).public_key.hex() for key in (KEY, OTHER_KEY))
GIVEN = ("--public-key", OURS)


@pytest.fixture(scope="module")
def signing(platform: Platform) -> Iterator[SigningDeps]:
    engine = db.engine(platform.database_url("intents_signer"), pool_size=1, name="signer")
    yield SigningDeps(engine, HeadSigner(KEY))
    engine.dispose()


@pytest.fixture
def signed(desk: Desk, signing: SigningDeps) -> Desk:
    """A desk with four actions that are signed, and one more."""
    for _ in range(4):
        desk.created(create())
    while sign_heads(signing):
        pass
    desk.created(create())
    return desk


def rewrite(desk: Desk, first: int) -> None:
    """Another symbol in an action, and every hash from there on made to fit, as whoever can change rows would."""
    as_superuser(
        desk, f"UPDATE intents.action SET symbol = 'FORGED' WHERE account_id = :account_id AND sequence = {first}"
    )
    actions = page(desk.admin, desk.account_id, 0, 100)
    previous = chain.GENESIS
    for action in actions:
        linked = chain.link(previous, action.sequence, chain.digest(record(action)))
        values = f"previous_hash = '\\x{previous.hex()}', hash = '\\x{linked.hex()}'"
        of = f"account_id = :account_id AND sequence = {action.sequence}"
        as_superuser(desk, f"UPDATE intents.action SET {values} WHERE {of}")
        previous = linked
    desk.execute(f"UPDATE intents.account_head SET last_hash = '\\x{previous.hex()}' WHERE account_id = :account_id")


def verified(desk: Desk) -> tuple[bool, int | None, str | None]:
    found = desk.get("/verify").json
    return found["valid"], found["signed_sequence"], found["first_broken"] and found["first_broken"]["reason"]


def test_verify_says_up_to_where_the_log_is_attested(signed: Desk, signing: SigningDeps) -> None:
    before = verified(signed)
    sign_heads(signing)

    assert (before, verified(signed)) == ((True, 4, None), (True, 5, None))


def test_events_are_attested_like_actions(signed: Desk, signing: SigningDeps) -> None:
    accepted(signed, str(signed.rows("intent")[0]["id"]), "b")
    sign_heads(signing)

    attested = verified(signed)
    as_superuser(signed, "UPDATE intents.account_event SET hash = sha256('x') WHERE account_id = :account_id")

    assert (attested, verified(signed)) == ((True, 6, None), (False, 6, "altered"))


def test_history_rewritten_with_all_its_hashes_differs_from_what_was_signed(signed: Desk) -> None:
    rewrite(signed, 2)

    assert verified(signed) == (False, 4, "differs_from_signed_head")


def test_what_came_after_the_signed_head_is_not_attested(signed: Desk) -> None:
    rewrite(signed, 5)

    assert verified(signed) == (True, 4, None)


def test_a_log_cut_back_before_what_was_signed_is_found(signed: Desk) -> None:
    [third] = [row for row in signed.rows("action") if row["sequence"] == 3]
    as_superuser(signed, "DELETE FROM intents.action WHERE account_id = :account_id AND sequence > 3")
    signed.execute(
        "UPDATE intents.account_head SET last_sequence = 3, last_hash = :hash WHERE account_id = :account_id",
        hash=bytes(third["hash"]),
    )

    assert verified(signed) == (False, 4, "signed_actions_missing")


def test_a_head_that_does_not_continue_what_was_signed_is_not_signed(signed: Desk, signing: SigningDeps) -> None:
    rewrite(signed, 2)

    sign_heads(signing)

    assert signed.account_id in signing.refused
    assert [row["sequence"] for row in signed.rows("signed_head")] == [4]


def test_a_signature_of_another_key_does_not_hold(signed: Desk) -> None:
    [row] = signed.rows("signed_head")
    signed.execute(
        "UPDATE intents.signed_head SET signature = :forged WHERE account_id = :account_id", forged=b"x" * 64
    )

    assert row["key_id"] == HeadSigner(KEY).key_id
    assert verified(signed) == (False, 4, "signature_does_not_hold")


@pytest.fixture
def tip_verify(signed: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`tip verify` of the desk, with these options."""
    monkeypatch.setenv("DATABASE_URL", signed.platform.admin_url)
    return lambda *options: CliRunner().invoke(command, ["--account", str(signed.account_id), *options])


def test_tip_verify_takes_the_public_key_from_its_caller(tip_verify: Callable[..., Result]) -> None:
    without, ours, other = (tip_verify(*options) for options in ([], GIVEN, ["--public-key", OTHERS]))

    assert (without.exit_code, ours.exit_code, other.exit_code) == (0, 0, 3)


def test_a_log_without_a_signature_is_not_verified_by_a_public_key(
    signed: Desk, tip_verify: Callable[..., Result]
) -> None:
    rewrite(signed, 2)
    signed.execute("DELETE FROM intents.signed_head WHERE account_id = :account_id")

    without, given = tip_verify(), tip_verify(*GIVEN)

    assert (without.exit_code, given.exit_code) == (0, 3)
    assert "attested by no signature" in without.output
    assert "BROKEN at sequence 5 (no entry): not_signed" in given.output


def test_tip_verify_says_up_to_where_and_by_which_key_the_log_is_attested(tip_verify: Callable[..., Result]) -> None:
    for options in ((), GIVEN):
        assert f"attested up to sequence 4 by public key {OURS}" in tip_verify(*options).output


def test_a_public_key_is_refused_with_a_file_because_it_is_not_used_there() -> None:
    answer = CliRunner().invoke(command, ["-", *GIVEN], input="")

    assert answer.exit_code == 2
    assert "keys are for a statement or --account" in answer.output


@pytest.fixture
def other_time_zone(signed: Desk) -> Iterator[None]:
    database = signed.execute("SELECT current_database()").scalar_one()
    signed.execute(f"ALTER DATABASE {database} SET timezone = 'Asia/Kolkata'")
    yield
    signed.execute(f"ALTER DATABASE {database} RESET timezone")


@pytest.mark.usefixtures("other_time_zone")
def test_a_signature_is_valid_in_every_time_zone(tip_verify: Callable[..., Result]) -> None:
    verified = tip_verify()

    assert verified.exit_code == 0, verified.output


FORGERIES = {
    "sign": "UPDATE intents.signed_head SET sequence = 1",
    "unsign": "DELETE FROM intents.signed_head",
    "bring a key": "INSERT INTO intents.log_signing_key (key_id, public_key) VALUES ('x', 'x')",
}


@pytest.mark.parametrize("role", ["intents", "intents_web"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_the_roles_that_write_the_log_cannot_touch_what_is_signed(platform: Platform, role: str, forgery: str) -> None:
    engine = db.engine(platform.database_url(role), pool_size=1, name="forger")
    with engine.begin() as tx, pytest.raises(ProgrammingError, match="permission denied"):
        tx.execute(text(FORGERIES[forgery]))
    engine.dispose()


def _refused(engine: Engine, statement: str) -> bool:
    try:
        with engine.begin() as tx:
            tx.execute(text(statement))
    except ProgrammingError:
        return True
    return False


def test_the_signer_cannot_write_the_log_nor_read_what_is_in_it(signing: SigningDeps) -> None:
    tried = (
        "INSERT INTO intents.action (account_id, sequence) VALUES (gen_random_uuid(), 1)",
        "UPDATE intents.account_head SET last_sequence = 1",
        "SELECT payload FROM intents.action",
        "SELECT * FROM intents.intent",
        "SELECT * FROM identity_api.usable_api_key",
        "DELETE FROM intents.signed_head",
    )

    assert [statement for statement in tried if not _refused(signing.engine, statement)] == []


def test_the_process_signs_by_itself_says_with_which_key_and_ends_when_terminated(desk: Desk) -> None:
    environment = {
        "DATABASE_URL": desk.platform.database_url("intents_signer"),
        "LOG_SIGNING_KEY": b64encode(KEY).decode(),
        "SIGN_EVERY_SECONDS": "0.1",
    }
    desk.created(create())
    with running("-m", "intents.worker", "signer", environment=environment) as signer:
        eventually(lambda: desk.rows("signed_head"))

        assert signer.end(signal.SIGTERM) == 0

    assert OURS in signer.output()  # which is where whoever distrusts the database finds it
    assert verified(desk) == (True, 1, None)
