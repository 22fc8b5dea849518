"""The judge itself: a good story is good, and each way of breaking the promise is found."""

import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

sys.path.insert(0, str(Path(__file__).parent))
from fault_check_answers import Periods, _check_obeyed, _check_status, _check_unanswered
from fault_check_controls import check_sent
from fault_check_log import _check_chain, _check_signed_head
from fault_check_streams import _check_event, check_outboxes
from fault_findings import Findings
from fault_records import AccountLog, Json, Story
from fault_story_builder import ACCOUNT, INTENT, START, StoryBuilder, evidence, filled


def test_an_intent_that_was_filled_as_the_broker_says_is_good():
    assert filled().findings() == set()


def test_an_intent_that_was_replaced_while_filling_and_then_canceled_is_good():
    builder = StoryBuilder("6")
    builder.event("ACCEPTED")
    builder.order("replaced", "6", "2")
    builder.event("PARTIALLY_FILLED", filled="2")
    builder.act("REPLACE", "10", "PENDING_REPLACE")
    builder.order("canceled", "8", "3")
    builder.quantity = Decimal(10)
    builder.event("PARTIALLY_FILLED", filled="5")
    builder.act("CANCEL", None, "PENDING_CANCEL")
    builder.event("CANCELED")

    assert builder.findings() == set()


def test_a_fill_that_only_the_broker_knows_is_found():
    builder = StoryBuilder()
    builder.event("ACCEPTED")
    order = builder.order("canceled", "6", "2")
    order.row["executions"].append({"id": "late", "qty": "1", "price": "10"})
    builder.event("CANCELED", filled="2")

    assert {"filled differs from the broker", "the trades of an order are not its executions"} <= builder.findings()


def test_an_order_that_lives_on_after_the_end_is_found_and_must_be_reported():
    builder = StoryBuilder()
    builder.act("CANCEL", None, "PENDING_CANCEL")
    builder.event("CANCELED", reason="CANCELED_BEFORE_SENT")
    builder.order("new", "6", born=24)

    assert builder.findings() == {
        "ended here, open at the broker",
        "an order surfaced after the end, and no event says so",
        "CANCELED_BEFORE_SENT, but it was sent",
    }


def test_an_order_that_surfaced_was_reported_and_is_gone_is_good():
    builder = StoryBuilder()
    builder.act("CANCEL", None, "PENDING_CANCEL")
    builder.event("CANCELED", reason="CANCELED_BEFORE_SENT")
    builder.order("canceled", "6", born=24)
    builder.event("CANCELED", reason="ORDER_AFTER_END")

    assert builder.findings() == set()


def test_two_orders_for_one_action_are_found_in_one_account_and_in_two():
    builder = filled()
    builder.order("filled", "6", "6", account="other")

    assert {
        "more than one order for one action",
        "one action has orders in two accounts at the broker",
        "more is filled than was requested, and no event says so",
    } <= builder.findings()


def test_an_overfill_is_good_only_with_its_event():
    builder = filled()
    builder.order("filled", "1", "1")
    builder.orders[-1][1][-1].row["client_order_id"] = "another"
    builder.event("FILLED", filled="7")
    assert "more is filled than was requested, and no event says so" in builder.findings()

    builder.event("FILLED", reason="OVERFILLED")
    assert "more is filled than was requested, and no event says so" not in builder.findings()


def test_an_open_order_for_more_than_remains_is_found():
    builder = StoryBuilder("6")
    builder.event("ACCEPTED")
    builder.order("replaced", "6", "3")
    builder.act("REPLACE", "12", "PENDING_REPLACE")
    builder.order("new", "10.5")
    builder.quantity = Decimal(12)
    builder.event("PARTIALLY_FILLED", filled="3")

    assert builder.findings() == {"the open order is not for what remains"}


def test_a_broken_row_of_statuses_is_found():
    builder = filled()
    builder.entries[-1].from_status = "PENDING"

    assert "a status does not follow from the one before" in builder.findings()
    assert builder.findings() & {"a transition that is not in the table"} == set()


def changes(control: str, symbol: str | None, value: Json, after: Json) -> list[Json]:
    """A control that counted from 100 to 115 seconds."""
    change = {"control": control, "account": ACCOUNT, "symbol": symbol, "status": 200}
    return [
        change | {"value": value, "begun": 99.0, "answered": 100.0},
        change | {"value": after, "begun": 115.0, "answered": 116.0},
    ]


HALT = changes("account_switch", None, {"trading_state": "HALTED"}, {"trading_state": "ACTIVE"})
DISABLED = changes("symbol_manual", "X", {"manually_disabled": True}, {"manually_disabled": False})


@pytest.mark.parametrize(("controls", "code"), [(HALT, "TRADING_HALTED"), (DISABLED, "SYMBOL_DISABLED")])
@pytest.mark.parametrize(("seconds", "is_found"), [(1.9, False), (8.7, True), (20.0, False)])
def test_an_order_that_leaves_against_a_control_is_found_until_it_is_lifted(controls, code, seconds, is_found):
    left = [{"method": "POST", "client_order_id": "tip-1", "received": 100.0 + seconds}]
    action = {"symbol": "X", "actor": {"type": "api_key"}, "spec": {"Market": {"quantity": "1"}}}
    findings = Findings()

    check_sent(evidence(controls=controls, left=left), {"tip-1": (ACCOUNT, action)}, findings)

    assert [finding.rule for finding in findings.found] == ([f"an order left against {code}"] if is_found else [])


@pytest.mark.parametrize(
    ("symbol", "reason", "found"),
    [
        ("X", "SYMBOL_DISABLED", set()),
        ("Y", "SYMBOL_DISABLED", {"SYMBOL_DISABLED, but no such control held"}),
        ("X", "TRADING_HALTED", {"TRADING_HALTED, but no such control held"}),
        ("X", "NO_IDEA", {"DENIED for a reason that no control has"}),
    ],
)
def test_a_denial_must_have_had_its_control(symbol, reason, found):
    builder = StoryBuilder()
    builder.event("DENIED", reason=reason)
    moment = START.timestamp()
    disabled = {"control": "symbol_manual", "account": ACCOUNT, "symbol": symbol, "status": 200}
    disabled |= {"value": {"manually_disabled": True}, "begun": moment, "answered": moment}

    assert builder.findings(controls=[disabled]) == found


@pytest.mark.parametrize(
    ("kind", "code", "good"),
    [("CANCEL", "intent_busy", False), ("REPLACE", "intent_busy", False), ("CANCEL", "intent_terminal", True)],
)
def test_a_conflict_must_have_been_one(kind, code, good):
    builder = filled()
    story = Story(INTENT, ACCOUNT, {}, builder.entries, builder.orders)
    log = AccountLog(ACCOUNT, False, 0, [], {INTENT: story})
    later = builder.entries[-1].written_at.timestamp() + 60
    answer = {"type": kind, "status": 409, "code": code, "intent": INTENT, "sent": later, "answered": later + 1}
    findings = Findings()

    _check_status(evidence(), log, answer | {"account": ACCOUNT}, Periods([]), findings)

    assert (findings.found == []) is good


@pytest.mark.parametrize(
    ("kind", "good"), [("CREATE", True), ("REPLACE", True), ("BATCH", True), ("CANCEL", False), ("READ", False)]
)
def test_an_overloaded_platform_may_refuse_orders_and_nothing_else(kind, good):
    answer = {"account": ACCOUNT, "type": kind, "status": 503, "code": "overloaded", "sent": 0.0, "answered": 0.1}
    findings = Findings()

    _check_status(evidence(), AccountLog(ACCOUNT, False, 0, [], {}), answer | {"found": False}, Periods([]), findings)

    assert (findings.found == []) is good


@pytest.mark.parametrize(("code", "excused"), [("overloaded", False), ("outcome_unknown", True)])
def test_what_was_refused_as_overloaded_and_done_all_the_same_is_found(code, excused):
    builder = filled()
    action = builder.entries[0].payload
    answer = {"account": ACCOUNT, "type": "CREATE", "status": 503, "code": code, "key": "k"}
    findings = Findings()

    kept = [{"action_id": action["id"], "key": "k"}]
    log = AccountLog(ACCOUNT, False, 0, builder.entries[:1], {})
    _check_unanswered(evidence(rows=lambda *_: kept), log, [answer], findings)

    assert (findings.found == []) is excused


@pytest.mark.parametrize(("waited", "good"), [(4.9, False), (5.1, True)])
def test_only_who_has_waited_is_refused_for_too_many_requests(waited, good):
    answer = {"account": ACCOUNT, "type": "CREATE", "status": 429, "code": "too_many_requests", "sent": 0.0}
    findings = Findings()

    _check_status(
        evidence(), AccountLog(ACCOUNT, False, 0, [], {}), answer | {"answered": waited}, Periods([]), findings
    )

    assert (findings.found == []) is good


@pytest.mark.parametrize(("repeated", "found"), [(True, False), (False, True)])
def test_a_limit_that_a_lost_answer_removed_no_longer_binds(repeated, found):
    limit = {"control": "symbol_limits", "account": ACCOUNT, "symbol": "X", "repeated": False, "status": 200}
    changes = [
        limit | {"value": {"max_quantity": "2"}, "begun": 99.0, "answered": 100.0},
        limit | {"value": None, "begun": 110.0, "answered": 112.0, "status": 404, "repeated": repeated},
    ]
    builder = StoryBuilder("6")
    action = builder.entries[0].payload
    answer = {"type": "CREATE", "action": action["id"], "intent": INTENT, "key": "k", "sent": 111.5, "answered": 111.8}
    findings = Findings()

    _check_obeyed(AccountLog(ACCOUNT, False, 0, builder.entries, {}), [answer], Periods(changes), findings)

    assert bool(findings.found) is found


def test_a_changed_record_breaks_the_chain():
    findings = Findings()
    record = {"id": "a", "sequence": 1, "symbol": "X", "previous_hash": "00" * 32, "hash": "00" * 32, "state": {}}

    _check_chain([record], findings)

    assert [finding.rule for finding in findings.found] == ["a hash is not that of its record"]


def _signed_head(last_hash: str) -> dict[str, object]:
    key, moment = Ed25519PrivateKey.generate(), datetime(2026, 1, 5, 12, tzinfo=UTC)
    message = f"tip signed head 1\n{ACCOUNT}\nepoch\n7\n{last_hash}\n2026-01-05T12:00:00.000000+00:00"
    return {
        "account_id": ACCOUNT, "epoch": "epoch", "sequence": 7, "hash": bytes.fromhex(last_hash), "signed_at": moment,
        "signature": key.sign(message.encode()), "public_key": key.public_key().public_bytes_raw(),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        ({}, []),
        ({"sequence": 8}, ["the signature of a head does not hold"]),
        ({"hash": bytes(32)}, ["the signed head is not the last entry", "the signature of a head does not hold"]),
        (None, ["the log of an account is not signed"]),
    ],
)
def test_a_log_that_is_not_signed_to_its_end_is_found(change, rules):
    findings, last = Findings(), "ab" * 32
    signed = [] if change is None else [_signed_head(last) | change]

    _check_signed_head(last, signed, findings)

    assert [finding.rule for finding in findings.found] == rules


@pytest.mark.parametrize("number", [1, 4])
def test_a_gap_and_a_duplicate_of_a_stream_are_found(number):
    builder = filled()
    logged = {entry.sequence: entry for entry in builder.entries}
    findings = Findings()
    entry = logged[number]
    line = {"n": number, "id": str(number), "type": entry.type, "digest": "", "status": entry.to_status}

    _check_event(line, 1 if number == 1 else 2, "grpc", logged, {}, findings)

    assert [finding.rule for finding in findings.found] == ["a stream has a gap or a duplicate"]


def test_two_events_of_one_key_that_changed_places_are_found():
    rows = [{"id": n, "ordering_key": "k", "status": "completed", "position": 3 - n} for n in (1, 2)]
    findings = Findings()

    check_outboxes(evidence(rows=lambda statement: rows if "intents.outbox" in statement else []), findings)

    assert [finding.rule for finding in findings.found] == ["a feed inverts two events of one key"]
