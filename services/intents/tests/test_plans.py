"""Prepared statements reach every row by a key, also those that were planned while the tables were empty."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import intents.execution.store
import intents.store
from intents.store.connections import PLAN_BY_KEYS
from intents.store.statement import Statement

from .conftest import Desk

# The columns by which an index is entered, at the least. An index that is not here serves no prepared statement.
ENTERED_BY = {
    "account_pkey": {"id"},
    "account_head_pkey": {"account_id"},
    "account_limits_pkey": {"account_id"},
    "account_switch_pkey": {"account_id"},
    "action_intent_idx": {"intent_id"},
    "action_created_at_idx": {"account_id", "created_at"},
    "action_symbol_idx": {"account_id", "symbol", "created_at"},
    "api_key_prefix_idx": {"prefix"},
    "backlog_pkey": {"organization_id", "scope"},
    "balance_pkey": {"account_id"},
    "broker_account_pkey": {"account_id"},
    "broker_login_pkey": {"account_id", "credential"},
    "broker_order_ended_idx": {"account_id", "broker_order_id"},
    "broker_order_intent_idx": {"intent_id"},
    "broker_order_unended_idx": {"account_id"},
    "broker_order_pkey": {"account_id", "client_order_id"},
    "credential_account_id_created_at_id_idx": {"account_id"},
    "day_equity_pkey": {"account_id"},
    "entitlement_pkey": {"organization_id"},
    "idempotency_pkey": {"account_id", "key"},
    "intent_client_id_key": {"account_id", "client_id"},
    "intent_group_idx": {"account_id", "group_id"},
    "intent_group_pkey": {"account_id", "id"},
    "intent_open_idx": {"account_id"},
    "intent_pkey": {"account_id", "id"},
    "key_budget_pkey": {"key_id"},
    "log_epoch_epoch_key": {"epoch"},
    "order_total_open_idx": {"account_id"},
    "order_total_pkey": {"account_id", "symbol"},
    "organization_pkey": {"id"},
    "position_held_idx": {"account_id"},
    "position_pkey": {"account_id", "symbol"},
    "quote_pkey": {"account_id", "symbol"},
}
# What is to be done or is leased, however much has been done before.
QUEUES = {"intent_work_idx", "intent_waiting_idx", "intent_lease_idx"}


def _statements() -> dict[str, Statement]:
    found = {}
    for package in (intents.store, intents.execution.store):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            values = vars(importlib.import_module(module.name)).values()
            found |= {value.name: value for value in values if isinstance(value, Statement)}
    return found


STATEMENTS = _statements()


def _scans(plan: Any) -> Iterator[dict[str, Any]]:
    if "Scan" in plan["Node Type"] and not plan.get("Relation Name", "pg_").startswith("pg_"):
        yield plan
    for part in plan.get("Plans", ()):
        yield from _scans(part)


def _columns(condition: str) -> set[str]:
    return set(re.findall(r"\(?(\w+) (?:=|<|>|<=|>=|IS) ", condition))


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_statement_that_was_planned_on_empty_tables_reaches_its_rows_by_keys(desk: Desk, name: str) -> None:
    statement = STATEMENTS[name]
    with desk.platform.admin() as connection:
        connection.exec_driver_sql(PLAN_BY_KEYS)
        connection.exec_driver_sql(statement.prepare.replace("%", "%%"))
        nothing = ", ".join(f"NULL::{type_}" for type_ in statement.types)
        execute = f"EXPLAIN (FORMAT JSON) EXECUTE {statement.name} ({nothing})"
        [found] = connection.exec_driver_sql(execute).scalar_one()

    scans = list(_scans(found["Plan"]))
    for scan in scans:
        index = scan.get("Index Name")
        assert index in QUEUES or index in ENTERED_BY, f"{scan['Relation Name']} by {index or scan['Node Type']}"
        missing = ENTERED_BY.get(index, set()) - _columns(scan.get("Index Cond", ""))
        assert not missing, f"{index} without {missing}: {scan.get('Index Cond')}"


def test_the_statements_of_the_submit_and_of_execution_are_among_them() -> None:
    hot = {"intents_facts", "intents_create", "intents_amend", "execution_claim", "execution_read", "execution_write"}
    assert hot < STATEMENTS.keys()


def test_plans_are_kept_until_many_rows_of_a_table_have_changed(desk: Desk) -> None:
    """A vacuum or an analyze of a table ends the plans of all statements with it, on every connection."""
    with desk.platform.admin() as connection:
        found = connection.exec_driver_sql("""
            SELECT c.oid::regclass::text AS of_table, array_agg(option_name || '=' || option_value) AS options
            FROM pg_class c LEFT JOIN LATERAL pg_options_to_table(reloptions) ON true
            WHERE relnamespace = 'intents'::regnamespace AND relkind = 'r' GROUP BY 1
        """)
        options = {row.of_table: set(row.options) for row in found}

    wanted = {f"autovacuum_{of}_threshold=20000" for of in ("vacuum", "vacuum_insert", "analyze")}
    assert {"intents.intent", "intents.order_total", "intents.broker_order"} <= options.keys()
    without = {table for table, given in options.items() if not wanted <= given}
    assert without == set(), "a new table needs the settings of migration 0024"
