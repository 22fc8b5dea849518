"""The rules of the log that have one home: who hands out sequence numbers, and which statuses are terminal."""

import re
from pathlib import Path

from sqlalchemy import Connection, text

import intents
from intents.model import TERMINAL, Status

SOURCES = Path(intents.__file__).parent


def test_sequence_numbers_are_handed_out_in_one_module() -> None:
    writers = [path for path in SOURCES.rglob("*.py") if "INSERT INTO intents.account_head" in path.read_text()]

    assert [path.name for path in writers] == ["account_head.py"]


def test_the_index_of_open_intents_leaves_out_the_terminal_statuses(admin: Connection) -> None:
    found = admin.execute(text("SELECT indexdef FROM pg_indexes WHERE indexname = 'intent_open_idx'")).scalar_one()

    assert {Status(word) for word in re.findall(r"'([A-Z_]+)'", found.partition("WHERE")[2])} == TERMINAL
