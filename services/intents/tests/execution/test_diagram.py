"""The drawing of the life cycle is made from its table."""

from pathlib import Path

from intents.model import lifecycle

DRAWING = Path(__file__).parents[2] / "LIFECYCLE.md"


def drawn() -> str:
    origin = "Drawn from `model/lifecycle.py` by `model.lifecycle.diagram()`; a test compares."
    return f"# The life of an intent\n\n{origin}\n\n```mermaid\n{lifecycle.diagram()}\n```\n"


def test_the_drawing_shows_the_table_as_it_is():
    assert DRAWING.read_text() == drawn(), "write drawn() to LIFECYCLE.md again"
