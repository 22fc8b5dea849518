"""What controls decided about an order, such that somebody who did not write the rules understands it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_TITLES = {
    "account": "Account is enabled",
    "organization_switch": "Trading state of the organization",
    "account_switch": "Trading state of the account",
    "symbol_manual": "Symbol is switched on",
    "symbol_time": "Trading window of the symbol",
    "entitlement": "Entitlement",
}


@dataclass(frozen=True)
class Check:
    """One control, what came of it, and its value at that moment."""

    control: str
    title: str
    outcome: str
    value: str
    message: str
    version: int | None

    @property
    def is_passed(self) -> bool:
        return self.outcome == "PASSED"


def explain(
    checks: Iterable[Mapping[str, Any]], reasons: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]
) -> list[Check]:
    """Those that refused first. A refusal names the reasons alone; then they are the checks."""
    named = {reason["control"]: reason for reason in reasons}
    listed = list(checks) or [{**reason, "outcome": "REFUSED"} for reason in named.values()]
    rows = [_check(check, named.get(check["control"], {}), facts) for check in listed]
    return sorted(rows, key=lambda row: row.is_passed)


def _check(check: Mapping[str, Any], reason: Mapping[str, Any], facts: Mapping[str, Any]) -> Check:
    control = check["control"]
    outcome = check["outcome"] if check["outcome"] == "PASSED" or not reason else reason["code"]
    value, message = _value(control, facts), reason.get("message", "")
    return Check(control, title(control), outcome, value, message, check.get("version"))


def title(control: str) -> str:
    """`account_limits.max_quantity` is `Max quantity of the account`."""
    owner, _, limit = control.partition(".")
    if limit:
        whose = "the account" if owner == "account_limits" else "the symbol"
        return f"{limit.replace('_', ' ').capitalize()} of {whose}"
    return _TITLES.get(control, control.replace("_", " ").capitalize())


def _value(control: str, facts: Mapping[str, Any]) -> str:
    owner, _, limit = control.partition(".")
    known = facts.get(owner)
    if not isinstance(known, Mapping):
        return ""
    if limit:
        return str(known.get(limit, ""))
    if owner == "symbol_time":
        return f"{known.get('trading_start', '00:00')[:5]} to {known.get('trading_end', '24:00')[:5]}"
    return ""
