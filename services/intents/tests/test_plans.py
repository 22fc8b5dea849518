"""Prepared statements reach every row by a key, also those that were planned while the tables were empty."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import intents.execution.store
import intents.store
from chassis.migrations import role
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
    "organization_switch_pkey": {"organization_id"},
    "position_held_idx": {"account_id"},
    "position_pkey": {"account_id", "symbol"},
    "quote_pkey": {"account_id", "symbol"},
    "symbol_limits_pkey": {"account_id", "symbol"},
    "symbol_manual_pkey": {"account_id", "symbol"},
    "symbol_time_pkey": {"account_id", "symbol"},
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
WEB, WORKER = role("intents_web"), role("intents")


def _scans(plan: Any) -> Iterator[dict[str, Any]]:
    if "Scan" in plan["Node Type"] and not plan.get("Relation Name", "pg_").startswith("pg_"):
        yield plan
    for part in plan.get("Plans", ()):
        yield from _scans(part)


def _columns(condition: str) -> set[str]:
    return set(re.findall(r"\(?(\w+) (?:=|<|>|<=|>=|IS) ", condition))


def _plan(desk: Desk, statement: Statement) -> Any:
    """As a process prepares it while the tables are empty: a web process, or an executor its own."""
    with desk.platform.admin() as connection:
        connection.exec_driver_sql(f"SET ROLE {WORKER if statement.name.startswith('execution_') else WEB}")
        connection.exec_driver_sql(PLAN_BY_KEYS)
        connection.exec_driver_sql(statement.prepare.replace("%", "%%"))
        nothing = ", ".join(f"NULL::{type_}" for type_ in statement.types)
        execute = f"EXPLAIN (FORMAT JSON) EXECUTE {statement.name} ({nothing})"
        [found] = connection.exec_driver_sql(execute).scalar_one()
        return found["Plan"]


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_statement_that_was_planned_on_empty_tables_reaches_its_rows_by_keys(desk: Desk, name: str) -> None:
    for scan in _scans(_plan(desk, STATEMENTS[name])):
        index = scan.get("Index Name")
        assert index in QUEUES or index in ENTERED_BY, f"{scan['Relation Name']} by {index or scan['Node Type']}"
        missing = ENTERED_BY.get(index, set()) - _columns(scan.get("Index Cond", ""))
        assert not missing, f"{index} without {missing}: {scan.get('Index Cond')}"


def test_the_rules_of_each_account_in_a_batch_are_no_query_of_their_own(desk: Desk) -> None:
    """A query within a query costs as much again as all the other facts, and row-level security twice that."""
    read = {scan["Relation Name"] for scan in _scans(_plan(desk, STATEMENTS["intents_facts"]))}

    assert read >= {
        "organization_switch",
        "account_switch",
        "account_limits",
        "symbol_manual",
        "symbol_time",
        "symbol_limits",
    }


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
