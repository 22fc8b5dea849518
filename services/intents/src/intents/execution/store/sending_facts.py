"""What decides whether commands may be sent: the facts that their submits would load now."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from intents.execution.model.commands import LeasedCommand
from intents.execution.model.local_decisions import order_to_count
from intents.model import without_itself
from intents.store import FactsQuery, load_facts_many
from intents.store import with_order_facts as count_orders
from intents.store.connections import Statement, Transaction

_ENTITLEMENTS = Statement(
    "execution_entitlements",
    ("uuid[]",),
    "SELECT id, entitlements FROM identity_api.organization WHERE id = ANY ($1)",
)


def with_facts(tx: Transaction, commands: Sequence[LeasedCommand]) -> list[LeasedCommand]:
    """The commands with the facts of this moment, in one read, and one more if an account is live.

    A CANCEL may always be sent, so nothing is read for it.
    """
    judged = [command for command in commands if command.type != "CANCEL"]
    if not judged:
        return list(commands)
    queries = [FactsQuery(command.account_id, ref_intent_id=command.intent_id) for command in judged]
    loaded = load_facts_many(tx, queries)
    facts = {command.intent_id: found.facts for command, found in zip(judged, loaded, strict=True)}
    entitlements = _entitlements(tx, judged)
    return [
        replace(
            command,
            facts=facts.get(command.intent_id, command.facts),
            entitlements=entitlements.get(command.organization_id, frozenset()),
        )
        for command in commands
    ]


def _entitlements(tx: Transaction, commands: Sequence[LeasedCommand]) -> dict[UUID, frozenset[str]]:
    """Of the organizations that trade live among them."""
    live = {str(command.organization_id) for command in commands if command.environment == "live"}
    rows = tx.read(_ENTITLEMENTS, (sorted(live),)) if live else ()
    return {row.id: frozenset(row.entitlements) for row in rows}


def with_order_facts(tx: Transaction, command: LeasedCommand, price_max_age: timedelta) -> LeasedCommand:
    """The command with what limits and the state REDUCING count, if they apply; it does not count itself."""
    needed = order_to_count(command)
    if needed is None:
        return command
    counted = count_orders(tx, command.facts, *needed, price_max_age)
    return replace(command, facts=without_itself(counted, command.submitted_at))
