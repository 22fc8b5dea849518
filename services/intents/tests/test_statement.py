"""The statement of an account: one file of its log, verified by code that shares nothing with the service."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from sqlalchemy import text
from werkzeug.test import TestResponse

from chassis import db
from intents import store
from intents.signing import HeadSigner
from intents.store.account_head import take_sequences
from intents.usecases import SigningDeps, sign_heads
from tip.statement_file import NotVerified, Verified, lines_of, verify
from tip_testing.commands import create, limit
from tip_testing.platform_plugin import Platform

from .broker_side import accept, fill
from .conftest import Desk

KEYS = [HeadSigner(bytes([number] * 32)) for number in (1, 2)]
EVENT = text(f"""
    WITH head AS ({
    take_sequences(
        "SELECT CAST(:account_id AS uuid) AS account_id, "
        "CAST(:organization_id AS uuid) AS organization_id, 1 AS sequences"
    )
})
    INSERT INTO intents.account_event (account_id, organization_id, sequence, id, type, payload, occurred_at)
    SELECT account_id, organization_id, last_sequence, gen_random_uuid(), 'ACCOUNT', '{{}}', now() FROM head
""")
PUBLIC_KEYS = {signer.key_id: signer.public_key for signer in KEYS}


@pytest.fixture(scope="module")
def signing(platform: Platform) -> Iterator[list[SigningDeps]]:
    """The signer before and after its key was rotated."""
    engine = db.engine(platform.database_url("intents_signer"), pool_size=1, name="signer")
    yield [SigningDeps(engine, signer) for signer in KEYS]
    engine.dispose()


def sign(signing: SigningDeps) -> None:
    while sign_heads(signing):
        pass


@pytest.fixture
def traded(desk: Desk, signing: list[SigningDeps]) -> Desk:
    """An account with actions and events of every kind of writer, all signed."""
    order = accept(desk, desk.created(limit(quantity="10"))["intent_id"], "b")
    fill(desk, order, "4", "100", "é")
    desk.created(create())
    sign(signing[0])
    return desk


def download(desk: Desk, query: str = "") -> TestResponse:
    return desk.client.get(f"/v1/accounts/{desk.account_id}/statement{query}", headers=desk.headers)


def verified(answer: TestResponse) -> Verified:
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return verify(lines_of(BytesIO(answer.get_data())), PUBLIC_KEYS)


def entries(answer: TestResponse) -> list[Any]:
    return [json.loads(line) for line in answer.get_data().splitlines()[1:-1]]


def test_a_statement_has_every_entry_of_the_log_and_proves_itself(traded: Desk) -> None:
    [head] = traded.rows("account_head")

    answer = download(traded)

    found = verified(answer)
    assert (found.first_sequence, found.last_sequence) == (1, head["last_sequence"])
    assert (found.account_id, found.key_id) == (str(traded.account_id), KEYS[0].key_id)
    assert answer.content_type == "application/jsonl"
    contents = [entry["content"] for entry in entries(answer)]
    assert {content.get("type", "ACTION") for content in contents} >= {"ACTION", "BROKER_ORDER", "BROKER_TRADE"}
    assert [content["id"] for content in contents if "command" in content] == [
        action["id"] for action in traded.get().json["data"]
    ]


def test_a_statement_is_made_in_parts(traded: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = download(traded).get_data()
    parts: list[tuple[int, int]] = []
    monkeypatch.setattr("intents.usecases.statements.ENTRIES_AT_ONCE", 2)
    read = store.entries
    monkeypatch.setattr(store, "entries", lambda *between: parts.append(between[2:]) or read(*between))

    assert download(traded).get_data() == whole
    assert len(parts) > 2 and max(until - after for after, until in parts) == 2


def test_what_is_changed_in_the_log_does_not_verify(traded: Desk) -> None:
    from .test_chain import as_superuser

    as_superuser(traded, "UPDATE intents.account_event SET occurred_at = now() WHERE account_id = :account_id")

    with pytest.raises(NotVerified, match="altered"):
        verified(download(traded))


def test_contents_can_be_made_by_hand(traded: Desk) -> None:
    """The recipes of docs/statement.md."""

    def ordered(value: Any) -> Any:
        if isinstance(value, dict):
            keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
            return {key: ordered(value[key]) for key in keys}
        return [ordered(item) for item in value] if isinstance(value, list) else value

    for entry in store.entries(traded.admin, traded.account_id, 0, 99):
        content = json.loads(entry.content)
        if "command" in content:
            assert json.dumps(content, sort_keys=True, separators=(",", ":")).encode() == entry.content
        else:
            assert json.dumps(ordered(content), ensure_ascii=False).encode() == entry.content


def moments(desk: Desk) -> list[str]:
    return [entry["content"]["created_at"] for entry in entries(download(desk))]


def test_a_statement_begins_before_its_period_and_ends_with_a_head_that_covers_it(
    traded: Desk, signing: list[SigningDeps]
) -> None:
    last = len(moments(traded))
    traded.created(create())
    sign(signing[0])
    since = moments(traded)[last]

    found = verified(download(traded, f"?from={since}"))

    assert (found.first_sequence, found.last_sequence) == (last, last + 1)


def write_late(desk: Desk, commands: int, events: int) -> None:
    """Orders that are written while a transaction is under way, which then writes events: their moment is earlier."""
    with desk.deps.engine.begin() as tx:
        tx.execute(text("SELECT now()"))
        for _ in range(commands):
            desk.created(create())
        for _ in range(events):
            tx.execute(EVENT, {"account_id": desk.account_id, "organization_id": desk.organization.id})


@pytest.mark.parametrize(("commands", "events"), [(1, 1), (1, 4), (4, 1), (3, 9)])
def test_a_statement_has_every_entry_of_its_period_however_late_others_were_written(
    traded: Desk, signing: list[SigningDeps], commands: int, events: int
) -> None:
    write_late(traded, commands, events)
    log = [(entry["sequence"], entry["content"]["created_at"]) for entry in signed_log(traded, signing[0])]

    for _, since in log:
        answer = download(traded, f"?from={since}")
        found = {entry["sequence"] for entry in entries(answer)}
        assert {sequence for sequence, moment in log if moment >= since} <= found
        verified(answer)


def test_of_two_periods_in_a_row_one_has_each_entry(traded: Desk, signing: list[SigningDeps]) -> None:
    write_late(traded, 2, 3)
    log = [(entry["sequence"], entry["content"]["created_at"]) for entry in signed_log(traded, signing[0])]

    for _, moment in log:
        found = [*entries(download(traded, f"?to={moment}")), *entries(download(traded, f"?from={moment}"))]
        assert {entry["sequence"] for entry in found} == {sequence for sequence, _ in log}


def signed_log(desk: Desk, signing: SigningDeps) -> list[Any]:
    sign(signing)
    return entries(download(desk))


def test_an_old_period_ends_with_a_head_that_was_kept(traded: Desk, signing: list[SigningDeps]) -> None:
    [kept] = traded.rows("signed_head_history")
    to = (kept["signed_at"] - timedelta(microseconds=1)).isoformat().replace("+", "%2B")
    traded.created(create())
    sign(signing[0])

    found = verified(download(traded, f"?to={to}"))

    assert found.last_sequence == kept["sequence"] < traded.rows("signed_head")[0]["sequence"]


def test_one_head_an_hour_is_kept(traded: Desk, signing: list[SigningDeps]) -> None:
    for _ in range(2):
        traded.created(create())
        sign(signing[0])
    assert len(traded.rows("signed_head_history")) == 1

    traded.execute(
        "UPDATE intents.signed_head_history SET signed_at = signed_at - interval '1 hour' "
        "WHERE account_id = :account_id"
    )
    traded.created(create())
    sign(signing[0])

    assert len(traded.rows("signed_head_history")) == 2


def test_nothing_is_stated_that_is_not_signed(desk: Desk, signing: list[SigningDeps]) -> None:
    assert download(desk).json["code"] == "statement_not_signed"
    desk.created(create())
    assert download(desk).status_code == 409
    sign(signing[0])
    desk.created(create())

    assert verified(download(desk)).last_sequence == 1
    assert download(desk, "?from=2999-01-01T00:00:00Z").status_code == 409


@pytest.mark.parametrize(
    "query",
    ["?from=yesterday", "?to=2026-01-01", "?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "?from=", "?to=0000"],
)
def test_a_moment_that_is_none_is_refused(desk: Desk, query: str) -> None:
    answer = download(desk, query)

    assert (answer.status_code, answer.json["code"]) == (400, "bad_time")


def test_a_statement_is_for_who_may_read_the_account(traded: Desk, new_desk: Callable[..., Desk]) -> None:
    other = new_desk()

    answer = other.client.get(f"/v1/accounts/{traded.account_id}/statement", headers=other.headers)

    assert answer.status_code == 404


def test_a_statement_costs_by_its_entries(traded: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    charged: list[int] = []
    monkeypatch.setattr("intents.routes_statements.charge", charged.append)
    monkeypatch.setattr("chassis.ratelimit.ROWS_PER_UNIT", 2)

    count = len(entries(download(traded)))

    assert charged == [count // 2]


def test_the_keys_are_published_and_old_ones_stay(traded: Desk, signing: list[SigningDeps]) -> None:
    traded.created(create())
    sign(signing[1])

    answer = traded.client.get("/.well-known/log-jwks.json")

    published = {key["kid"]: key for key in answer.json["keys"]}
    assert {signer.key_id for signer in KEYS} <= set(published)
    assert published[KEYS[1].key_id].items() >= {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}.items()
    assert verified(download(traded)).key_id == KEYS[1].key_id
