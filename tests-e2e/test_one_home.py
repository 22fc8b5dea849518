"""What has one home in the code: SQL is in the stores, the client order id is derived in one module."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICES = Path(__file__).parents[1] / "services"
STATEMENTS = {"text", "select", "insert", "update", "delete", "union", "union_all", "literal_column", "Statement"}
"""What makes a statement, of sqlalchemy and of our own connections."""
SQL = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE [\w.]+ SET|DELETE FROM|WITH \w+ AS|LOCK TABLE|NOTIFY|LISTEN)\s")
CLIENT_ORDER_ID = re.compile(r"(^|')tip-('|$)|::text, '-', ''")
"""Its prefix alone, in Python or in SQL, or a UUID without its dashes in SQL."""


def modules() -> list[Path]:
    return sorted(SERVICES.glob("*/src/*/**/*.py"))


def nodes(code: str) -> Iterator[ast.AST]:
    """Everything but docstrings."""
    tree = ast.parse(code)
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, holders) and node.body]
    docstrings = {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}
    return (node for node in ast.walk(tree) if id(node) not in docstrings)


def texts(code: str) -> Iterator[str]:
    return (node.value for node in nodes(code) if isinstance(node, ast.Constant) and isinstance(node.value, str))


OF_STATEMENTS = re.compile(r"sqlalchemy|.*\bstore\.(connections|statement)$")


def imported(code: str) -> Iterator[str]:
    """What is imported of sqlalchemy and of the stores' connections."""
    for node in nodes(code):
        if isinstance(node, ast.ImportFrom) and OF_STATEMENTS.match(node.module or ""):
            yield from (name.name for name in node.names)


def has_sql(code: str) -> bool:
    return not STATEMENTS.isdisjoint(imported(code)) or any(map(SQL.match, texts(code)))


def derives_client_order_id(code: str) -> bool:
    return any(map(CLIENT_ORDER_ID.search, texts(code)))


def test_sql_is_in_the_stores_and_nowhere_else() -> None:
    homes = {module.relative_to(SERVICES) for module in modules() if has_sql(module.read_text())}

    assert [str(home) for home in homes if "store" not in (*home.parts[:-1], home.stem)] == []
    assert {home.parts[0] for home in homes} >= {"identity", "accounts", "controls", "intents", "stream-gateway"}


def test_the_client_order_id_is_derived_in_one_module() -> None:
    homes = [module.relative_to(SERVICES) for module in modules() if derives_client_order_id(module.read_text())]

    assert list(map(str, homes)) == ["intents/src/intents/execution/client_order_id.py"]


@pytest.mark.parametrize(
    "code",
    [
        "from sqlalchemy import text",
        "from sqlalchemy.dialects.postgresql import insert",
        "from intents.store.statement import Statement",
        'tx.exec_driver_sql("SELECT 1")',
        'def f(tx):\n    """Read."""\n    tx.execute(f"DELETE FROM {table}")',
    ],
)
def test_sql_is_recognized(code: str) -> None:
    assert has_sql(code)
    assert not has_sql('"""SELECT is a word here."""\nfrom sqlalchemy import Connection')


@pytest.mark.parametrize(
    "value", ['f"tip-{action_id.hex}"', '"tip-" + action_id.hex', "\"'tip-' || id\"", "\"replace(id::text, '-', '')\""]
)
def test_a_derived_client_order_id_is_recognized(value: str) -> None:
    assert derives_client_order_id(f"order = {value}")
    assert not derives_client_order_id('order = "tip-hints"')
