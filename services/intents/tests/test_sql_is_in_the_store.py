"""SQL is in the stores and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import intents

PACKAGE = Path(intents.__file__).parent
SQL = {("sqlalchemy", "text"), ("intents.store.connections", "Statement")}


def imports(module: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", name.name) for name in node.names)


def test_only_a_store_imports_what_makes_a_statement():
    modules = {path.relative_to(PACKAGE): set(imports(path)) for path in PACKAGE.rglob("*.py")}
    with_sql = [path for path, names in modules.items() if names & SQL]

    assert [str(path) for path in with_sql if "store" not in path.parts] == []
    assert {path.parts[:-1] for path in with_sql} == {("store",), ("execution", "store")}
