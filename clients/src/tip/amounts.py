"""Quantities and prices on the command line: exact decimals above zero."""

from decimal import Decimal, InvalidOperation
from typing import Any

import click


class Amount(click.ParamType[Decimal]):
    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        found = _decimal(str(value))
        if not found.is_finite() or found <= 0:
            self.fail(f"{value!r} is no number above zero", param, ctx)
        return found


def _decimal(text: str) -> Decimal:
    """Zero of what is none. `1_0` and digits of other scripts are one to Python, but more likely a slip of the hand."""
    try:
        return Decimal(text) if text.isascii() and "_" not in text else Decimal(0)
    except InvalidOperation:
        return Decimal(0)


AMOUNT = Amount()
