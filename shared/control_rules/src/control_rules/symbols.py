"""How a symbol is written: the same in a path, in a body and in a row."""

import re

SYMBOL_PATTERN = r"[A-Z0-9][A-Z0-9._:/-]{0,31}"
_SYMBOL = re.compile(SYMBOL_PATTERN, re.ASCII)


def normalized_symbol(text: str) -> str | None:
    """The symbol trimmed of spaces and upper-cased, or None if it is not one."""
    # Checked first: upper() turns some foreign letters into plain ones, and strip() without an argument eats controls.
    if not text.isascii():
        return None
    symbol = text.strip(" ").upper()
    return symbol if _SYMBOL.fullmatch(symbol) else None
