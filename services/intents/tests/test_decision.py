"""What becomes of a submission: a pure function of facts, so that every case is one row and no database."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

import control_rules
from intents import model
from intents.model import Append, DryRun, OrderFactsNeeded, Refused, RepeatedCancel, Replay, Status, Submission, decide
from tip_broker_alpaca import PAPER
from tip_brokers import Capabilities, ClientIds, Replacement

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
ORGANIZATION, ACCOUNT_ID, INTENT_ID = uuid4(), uuid4(), uuid4()
ACCOUNT = model.Account(ACCOUNT_ID, ORGANIZATION, "paper", "paper", PAPER.capabilities)
LIVE = ACCOUNT._replace(environment="live")
SMALL = ACCOUNT._replace(broker="small", can=Capabilities(ClientIds.UNIQUE, replacement=Replacement.NONE))
GONE = ACCOUNT._replace(broker="gone", can=None)
KEY = model.IdempotencyKey("k", b"hash")
PRIOR = model.PriorResult(b"hash", INTENT_ID, uuid4(), {}, created=True)
LIMITED = control_rules.Limits(1, max_orders_per_minute=1)
REDUCING = control_rules.Switch(control_rules.TradingState.REDUCING, 1)
DISABLED = control_rules.ManualControl(manually_disabled=True, version=1)


@dataclass(frozen=True)
class Key:
    """A caller."""

    organization_id: UUID | None = ORGANIZATION
    environment: str | None = "paper"
    entitlements: frozenset[str] = frozenset()


def spec(quantity: str = "10", kind: str = "Limit") -> model.Spec:
    return model.Spec(kind, {"quantity": quantity, "limit_price": "99"} if kind == "Limit" else {"quantity": quantity})


CREATE = model.Create({}, "AAPL", "BUY", "AUTO", spec())
REPLACE = model.Replace({}, INTENT_ID, spec("20"))
CANCEL = model.Cancel({}, INTENT_ID)
HOLD = model.HoldToTotal(INTENT_ID, 0)


def controls(**given: Any) -> control_rules.Facts:
    return control_rules.Facts("UTC", account_disabled=False, account_version=1, **given)


def intent(status: Status = Status.ACCEPTED, filled: str = "0") -> model.Intent:
    quantity, filled_quantity = Decimal(10), Decimal(filled)
    return model.Intent(
        INTENT_ID, "AAPL", "BUY", "AUTO", spec(), quantity, status, filled_quantity, None, "b", None, None, 1, NOW, NOW
    )  # fmt: skip


def facts(**given: Any) -> model.SubmitFacts:
    return model.SubmitFacts(**{"now": NOW, "account": ACCOUNT, "controls": controls()} | given)


def submission(command: Any = CREATE, **given: Any) -> Submission:
    actor = model.Actor("api_key", "x")
    return Submission(**{"account_id": ACCOUNT_ID, "command": command, "actor": actor, "caller": Key()} | given)


FOREIGN, UNENTITLED = Key(organization_id=uuid4()), Key(environment="live")
REFUSALS: dict[str, tuple[model.SubmitFacts, Submission, type[model.Refusal]]] = {
    "no account": (facts(account=None), submission(), model.AccountNotFound),
    "no account, for the platform": (facts(account=None), submission(CANCEL, caller=None), model.AccountNotFound),
    "another's account": (facts(), submission(caller=FOREIGN), model.AccountNotFound),
    "another environment": (facts(account=LIVE), submission(), model.Forbidden),
    "no entitlement": (facts(account=LIVE), submission(caller=UNENTITLED), model.EntitlementRequired),
    "another body": (facts(prior=PRIOR), submission(idempotency_key=KEY._replace(request_hash=b"x")),
                     model.IdempotencyKeyReused),
    "no intent": (facts(), submission(CANCEL), model.IntentNotFound),
    "an ended intent": (facts(intent=intent(Status.FILLED)), submission(CANCEL), model.IntentTerminal),
    "a busy intent": (facts(intent=intent(Status.PENDING_REPLACE)), submission(REPLACE), model.IntentBusy),
    "another kind": (facts(intent=intent()), submission(model.Replace({}, INTENT_ID, spec(kind="Market"))),
                     model.InvalidReplacement),
    "less than is filled": (facts(intent=intent(filled="20")), submission(REPLACE), model.InvalidReplacement),
    "a client_id that is taken": (facts(client_id_holder=INTENT_ID), submission(), model.ClientIdTaken),
    "a key that made no intent": (facts(prior=PRIOR, client_id_holder=uuid4()), submission(idempotency_key=KEY),
                                  model.ClientIdTaken),
    "a broker that is not installed": (facts(account=GONE), submission(), model.BrokerCannot),
    "what the broker cannot do": (facts(account=SMALL), submission(model.Create({}, "AAPL", "BUY", "DIRECT", spec())),
                                  model.BrokerCannot),
    "what the broker cannot replace": (facts(account=SMALL, intent=intent()), submission(REPLACE), model.BrokerCannot),
    "what the broker cannot do, whatever controls say": (
        facts(account=GONE, controls=controls(symbol_manual=DISABLED)), submission(), model.BrokerCannot),
    "a control": (facts(controls=controls(symbol_manual=DISABLED)), submission(), model.ControlRejected),
    "a backlog": (facts(backlog="account"), submission(), model.Overloaded),
    "a backlog, for a dry run": (facts(backlog="broker"), submission(dry_run=True), model.Overloaded),
    "a backlog, whatever is to be counted": (facts(backlog="account", controls=controls(account_limits=LIMITED)),
                                             submission(), model.Overloaded),
    "a backlog, for a replacement": (facts(backlog="account", intent=intent()), submission(REPLACE), model.Overloaded),
    "held to its total while it is replaced": (facts(intent=intent(Status.PENDING_REPLACE)), submission(HOLD),
                                               model.IntentBusy),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_a_value(name: str) -> None:
    given_facts, given_submission, error = REFUSALS[name]

    decision = decide(given_facts, given_submission)

    assert isinstance(decision, Refused) and type(decision.error) is error


def test_an_earlier_answer_stands_whatever_controls_say_now() -> None:
    refusing = facts(prior=PRIOR, controls=controls(symbol_manual=DISABLED))

    assert decide(refusing, submission(idempotency_key=KEY)) == Replay(PRIOR)


def test_a_cancel_of_a_pending_cancel_is_answered_with_the_first() -> None:
    assert decide(facts(intent=intent(Status.PENDING_CANCEL)), submission(CANCEL)) == RepeatedCancel(INTENT_ID)


def test_a_dry_run_writes_nothing() -> None:
    assert isinstance(decide(facts(), submission(dry_run=True)), DryRun)


def test_the_platform_needs_no_entitlement() -> None:
    decision = decide(facts(account=LIVE, intent=intent()), submission(CANCEL, caller=None, reason="STALE_ORDER"))

    assert isinstance(decision, Append) and decision.pending.action.reason == "STALE_ORDER"


@pytest.mark.parametrize(
    "given", [{"account_limits": LIMITED}, {"symbol_limits": LIMITED}, {"account_switch": REDUCING}]
)
@pytest.mark.parametrize(("command", "counts"), [(CREATE, True), (REPLACE, True), (CANCEL, False), (HOLD, False)])
def test_orders_are_counted_only_for_what_may_add_risk(given: dict[str, Any], command: Any, counts: bool) -> None:
    known = facts(intent=intent(), controls=controls(**given))

    assert isinstance(decide(known, submission(command)), OrderFactsNeeded) is counts
    assert not isinstance(decide(replace(known, has_order_facts=True), submission(command)), OrderFactsNeeded)


@pytest.mark.parametrize(
    ("replacements", "filled", "state", "type_"),
    [
        (0, "4", "ACTIVE", "REPLACE"),
        (model.MOST_REPLACEMENTS, "4", "ACTIVE", "CANCEL"),
        (0, "10", "ACTIVE", "CANCEL"),
        (0, "4", "HALTED", "CANCEL"),
    ],
)
def test_an_order_for_too_much_is_replaced_or_else_canceled(
    replacements: int, filled: str, state: str, type_: str
) -> None:
    switch = control_rules.Switch(control_rules.TradingState(state), 1)
    known = facts(intent=intent(filled=filled), controls=controls(account_switch=switch))

    decision = decide(known, submission(model.HoldToTotal(INTENT_ID, replacements), caller=None))

    assert isinstance(decision, Append) and decision.pending.action.type == type_


def test_an_order_for_too_much_is_canceled_where_the_broker_replaces_nothing() -> None:
    decision = decide(facts(account=SMALL, intent=intent(filled="4")), submission(HOLD, caller=None))

    assert isinstance(decision, Append) and decision.pending.action.type == "CANCEL"


@pytest.mark.parametrize("account", [SMALL, GONE], ids=["it replaces nothing", "it is not installed"])
def test_a_cancel_is_possible_at_every_broker(account: model.Account) -> None:
    assert isinstance(decide(facts(account=account, intent=intent()), submission(CANCEL)), Append)


def test_what_waits_for_a_broker_that_is_gone_is_kept() -> None:
    owner = model.Owner(ORGANIZATION, "paper", frozenset())

    assert model.decide_again(facts(account=GONE), owner, CREATE) is None


def test_an_earlier_answer_stands_whatever_waits() -> None:
    assert decide(facts(prior=PRIOR, backlog="account"), submission(idempotency_key=KEY)) == Replay(PRIOR)


def test_a_command_that_was_accepted_is_sent_whatever_waits() -> None:
    owner = model.Owner(ORGANIZATION, "paper", frozenset())

    assert model.decide_again(facts(backlog="account"), owner, CREATE) is None


COMMANDS = st.sampled_from([CREATE, REPLACE, CANCEL, HOLD])
CONTROLS = st.sampled_from([controls(), controls(symbol_manual=DISABLED), controls(account_limits=LIMITED)])
INTENTS = st.none() | st.sampled_from(Status).map(intent)


@given(COMMANDS, INTENTS, st.sampled_from([None, PRIOR]), CONTROLS, st.booleans(), st.sampled_from([None, KEY]))
def test_every_submission_is_decided_and_only_an_admitted_one_is_written(
    command: Any, known: model.Intent | None, prior: Any, rules: control_rules.Facts, dry_run: bool, key: Any
) -> None:
    found = facts(intent=known, prior=prior, controls=rules)

    decision = decide(found, submission(command, dry_run=dry_run, idempotency_key=key))

    assert isinstance(decision, Replay) is (prior is not None and key is not None)
    if isinstance(decision, Append):
        assert not dry_run and decision.pending.idempotency_key == key
        assert decision.pending.is_create is (command is CREATE)
        assert known is None or command is CREATE or known.status not in model.TERMINAL


CALLERS, BACKLOGS = st.sampled_from([None, Key()]), st.sampled_from(["account", "broker"])


@given(COMMANDS, INTENTS, CONTROLS, st.booleans(), CALLERS, BACKLOGS)
def test_a_backlog_refuses_orders_of_callers_and_changes_nothing_else(
    command: Any, known: model.Intent | None, rules: control_rules.Facts, dry_run: bool, caller: Any, backlog: str
) -> None:
    calm = facts(intent=known, controls=rules)
    given_submission = submission(command, dry_run=dry_run, caller=caller)

    behind = decide(replace(calm, backlog=backlog), given_submission)

    if caller and command in (CREATE, REPLACE):
        assert isinstance(behind, Refused) and isinstance(behind.error, model.Overloaded)
        assert behind.error.problem == {"backlog": backlog}
    else:
        assert type(behind) is type(decide(calm, given_submission))
        assert not (isinstance(behind, Refused) and isinstance(behind.error, model.Overloaded))
