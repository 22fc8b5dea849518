"""The drawings of the life cycle show its table."""

import re
from pathlib import Path

from intents.model import lifecycle

DRAWING = Path(__file__).parents[2] / "LIFECYCLE.md"
MANUAL = Path(__file__).parents[4] / "docs" / "manual" / "life-cycle.svg"


def drawn() -> str:
    origin = "Drawn from `model/lifecycle.py` by `model.lifecycle.diagram()`; a test compares."
    return f"# The life of an intent\n\n{origin}\n\n```mermaid\n{lifecycle.diagram()}\n```\n"


def test_the_drawing_shows_the_table_as_it_is():
    assert DRAWING.read_text() == drawn(), "write drawn() to LIFECYCLE.md again"


def test_the_drawing_of_the_manual_has_every_status_and_only_steps_of_the_table():
    drawing = MANUAL.read_text()
    steps = {(status, following) for (status, _), following in lifecycle.NEXT.items()}
    shown = [tuple(step.split()) for step in re.findall(r'data-step="([A-Z_ ]+)"', drawing)]

    assert sorted(re.findall(r'class="status[^>]*>([A-Z_]+)<', drawing)) == sorted(lifecycle.Status)
    assert set(re.findall(r'class="status end"[^>]*>([A-Z_]+)<', drawing)) == lifecycle.TERMINAL
    assert len(shown) > 10 and set(shown) <= steps
