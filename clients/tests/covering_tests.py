"""Commands and programs of pages that are not run from the page, and the proof that a test runs each of them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Covering:
    """A test, or a fixture of tests, and words that stand side by side in what it does."""

    file: str
    name: str
    words: tuple[str, ...]

    def is_so(self) -> bool:
        """Whether the file has this test, and it, or what it uses of its file, has these words in this order."""
        functions = _functions(ROOT / self.file)
        used = [functions[name] for name in _reached(self.name, functions)]
        return any(_follow(self.words, row) for function in used for row in _rows(function))


FIRST_RUN = ("tests-e2e/test_first_run.py", "test_from_an_empty_installation_to_a_filled_order")
BACKUP = ("clients/tests/test_live_backup.py", "test_a_backup_is_restored_with_its_log_under_a_new_epoch")
PLATFORM = ("clients/conftest.py", "whole_platform")
AT_PROVIDERS = ("services/identity/tests/test_login_at_providers.py", "test_somebody_signs_in_at_npms_oidc_provider")
BROKER_CHECK = ("shared/testing/tests/test_broker_check.py", "test_the_paper_broker_keeps_all_that_it_claims")
COMMANDS = {
    "make up": Covering(*PLATFORM, ("tip", "start")),
    "make stop": Covering(*PLATFORM, ("tip", "stop")),
    "tip broker check paper": Covering(*BROKER_CHECK, ("check", "paper")),
    "tip login --url": Covering(*AT_PROVIDERS, ("terminal", "login", "--url")),
    "TIP_HOME=~/tip TIP_DEMO=no make up": Covering("tests-e2e/test_first_run.py", "empty", ("TIP_DEMO", "no")),
    "TIP_HOME=~/tip tip init": Covering(*FIRST_RUN, ("tip", "init", "--organization", "Acme", "--admin")),
    "tip login": Covering(*FIRST_RUN, ("terminal", "login")),
    "tip people invite": Covering(*FIRST_RUN, ("tip", "people", "invite", "BOB", "member")),
    "TIP_HOME=~/restored tip restore": Covering(*BACKUP, ("json", "restore")),
    "TIP_HOME=~/restored tip start": Covering(*PLATFORM, ("tip", "start")),
    "TIP_HOME=~/restored tip epoch list": Covering(*BACKUP, ("done", "epoch", "list")),
}
"""Beginnings of commands that start a platform or need a person."""

IN_CONTAINERS = "tests-e2e/containers"
SDK, EVENTS = "clients/python/tests/test_live_orders.py", "clients/python/tests/test_live_events.py"
GROUPS = ("clients/python/tests/test_order_groups.py", "test_a_bracket_is_an_entry_with_two_exits_of_its_quantity")
BY_HAND = ("services/intents/tests/test_statement.py", "test_contents_can_be_made_by_hand")
FAULTS = "test_under_kills_pauses_and_a_bad_line_nothing_is_lost_doubled_out_of_order_or_untrue"
SMALL = ("--size", "small", "--seed", "7")
BLOCKS = {
    "docs/operations.md": {
        "docker-compose up -d  ": Covering(f"{IN_CONTAINERS}/compose_platform.py", "start", ("up", "--detach")),
        "docker-compose exec -T postgres pg_dump": Covering(
            f"{IN_CONTAINERS}/test_backup.py", "restored", ("commands", "Backup and restore")
        ),
        "docker-compose up -d postgres": Covering(
            f"{IN_CONTAINERS}/test_backup.py", "restored", ("commands", "Backup and restore")
        ),
        "tip backup before-upgrade": Covering(*BACKUP, ("json", "backup")),
    },
    "docs/reliability.md": {"make chaos": Covering("tests-e2e/fault/test_fault_run.py", FAULTS, SMALL)},
    "docs/security.md": {
        "make attack": Covering("tests-e2e/attack/test_attack_run.py", "test_nothing_gives_way_to", SMALL)
    },
    "docs/statement.md": {
        "covered = {": Covering(*BY_HAND, ("dumps", "content")),
        "def ordered(value):": Covering(*BY_HAND, ("ordered", "content")),
    },
    "clients/python/README.md": {
        "import tip_client as tip": Covering(SDK, "test_an_order_is_bought_and_filled", ("wait", "FILLED")),
        "from tip_client import Bracket": Covering(*GROUPS, ("Limit", "AAPL", "BUY")),
        "try:": Covering(SDK, "test_what_controls_refuse_says_why", ("raises", "ControlRejected")),
        "for event in client.events(": Covering(EVENTS, "test_events_go_on_after_a_stored_position", ("events",)),
    },
}
"""Blocks of reference pages, by how they begin: those that need containers, hours, or the rest of a program."""


@cache
def _functions(file: Path) -> dict[str, ast.AST]:
    return {node.name: node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


def _reached(name: str, functions: dict[str, ast.AST]) -> set[str]:
    """The function and those of its file that it uses, by their names: calls, and fixtures as parameters."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        found = waiting.pop()
        if found in functions and found not in seen:
            seen.add(found)
            waiting += [word for node in ast.walk(functions[found]) if (word := _word(node))]
    return seen


def _rows(function: ast.AST) -> Iterator[list[str | None]]:
    """Whatever stands side by side in it: a call with its arguments, a list, a key with its value."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield [_word(node.func), *map(_word, node.args)]
        elif isinstance(node, ast.List | ast.Tuple):
            yield [_word(element) for element in node.elts]
        elif isinstance(node, ast.Dict):
            yield from ([_word(key) if key else None, _word(value)] for key, value in _items(node))


def _items(node: ast.Dict) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    return zip(node.keys, node.values, strict=True)


def _word(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    return node.attr if isinstance(node, ast.Attribute) else None


def _follow(words: tuple[str, ...], row: list[str | None]) -> bool:
    return any(tuple(row[place : place + len(words)]) == words for place in range(len(row)))
