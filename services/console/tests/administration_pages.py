"""What tests of administration in a browser share."""

import os
import re
from pathlib import Path

from browser_pages import WIDTHS, violations

SHOTS = os.environ.get("CONSOLE_SCREENSHOTS")
"""A folder to keep screenshots in."""

CHECKED = {"light": (390, 1280), "dark": (1280,)}
"""Where axe looks: a narrow page differs in what stands where, a dark one in its colours alone."""


def audit(stack):
    return f"/console/accounts/{stack.account()}/audit"


def check_page(page, name, theme):
    """Accessible, and at every width nothing wider than the window."""
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        if width in CHECKED[theme]:
            assert violations(page) == [], (name, width)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{re.sub(r'[^a-z-]', '-', name)}-{width}-{theme}.png", full_page=True)
