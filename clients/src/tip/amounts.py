"""Quantities and prices on the command line: exact decimals above zero."""

from decimal import Decimal, InvalidOperation
from typing import Any

import click


class Amount(click.ParamType[Decimal]):
    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            found = Decimal(str(value))
        except InvalidOperation:
            found = Decimal(0)
        if not found.is_finite() or found <= 0:
            self.fail(f"{value!r} is no number above zero", param, ctx)
        return found


AMOUNT = Amount()
