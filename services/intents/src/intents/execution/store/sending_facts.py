"""What decides whether commands may be sent: the facts that their submits would load now."""

from dataclasses import replace
from datetime import timedelta

from intents.execution.model.commands import LeasedCommand
from intents.execution.model.local_decisions import order_to_count
from intents.execution.store.groups import counted_siblings
from intents.model import SubmitFacts, without_itself
from intents.model.groups import EXITS, without_siblings
from intents.store import FactsQuery, load_facts
from intents.store import with_order_facts as count_orders
from intents.store.statement import Statement, Transaction

_ENTITLEMENTS = Statement(
    "execution_entitlements", ("uuid",), "SELECT entitlements FROM identity_api.organization WHERE id = $1"
)


def with_facts(tx: Transaction, command: LeasedCommand) -> LeasedCommand:
    """The command with the facts of this moment: one read, and one more if the account is live.

    A CANCEL may always be sent, so nothing is read for it.
    """
    if command.type == "CANCEL":
        return command
    loaded = load_facts(tx, FactsQuery(command.account_id, ref_intent_id=command.intent_id))
    return replace(command, facts=loaded.facts, entitlements=_entitlements(tx, command))


def _entitlements(tx: Transaction, command: LeasedCommand) -> frozenset[str]:
    if command.environment != "live":
        return frozenset()
    return frozenset(
        name for row in tx.read(_ENTITLEMENTS, (str(command.organization_id),)) for name in row.entitlements
    )


def with_order_facts(tx: Transaction, command: LeasedCommand, price_max_age: timedelta) -> LeasedCommand:
    """The command with what limits and the state REDUCING count, if they apply; it does not count itself."""
    needed = order_to_count(command)
    if needed is None:
        return command
    counted = count_orders(tx, command.facts, needed.symbol, needed.order_side, price_max_age)
    counted = _without_siblings(tx, command, counted)
    return replace(command, facts=without_itself(counted, command.submitted_at))


def _without_siblings(tx: Transaction, command: LeasedCommand, facts: SubmitFacts) -> SubmitFacts:
    """Of the exits of an order group only one is ever filled: the others add nothing to it."""
    intent = facts.intent
    if intent is None or intent.group_id is None or intent.group_role not in EXITS:
        return facts
    return without_siblings(facts, counted_siblings(tx, command.account_id, intent.group_id, intent.id))
