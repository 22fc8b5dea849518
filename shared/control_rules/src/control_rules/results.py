"""What one control says about a command."""

from typing import NamedTuple

from control_rules.facts import Outcome, RefusalCode


class Result(NamedTuple):
    """A finding before it has the name of its control. Without a code it does not refuse."""

    outcome: Outcome
    code: RefusalCode | None = None
    message: str = ""


PASSED = Result(Outcome.PASSED)
NOT_APPLICABLE = Result(Outcome.NOT_APPLICABLE)


def refused(code: RefusalCode, message: str) -> Result:
    return Result(Outcome.REFUSED, code, message)


def unknown(code: RefusalCode, fact: str) -> Result:
    return Result(Outcome.NOT_EVALUATED, code, f"This control cannot be evaluated: the {fact} is not known.")
