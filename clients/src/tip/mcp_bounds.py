"""Whether a credential is safe enough to be handed to an agent that submits orders."""

from typing import TYPE_CHECKING

from tip.exits import REFUSED, Failure

if TYPE_CHECKING:
    from tip_client import Client
    from tip_client.models.identity import KeyValidation

HOW = (
    "make one: tip keys create agent --environment live --permission intent:read --permission intent:edit "
    "--permission account:read --account NAME --symbol SYMBOL --max-notional-per-day AMOUNT --expires 7d; "
    "or serve with --read-only"
)


def check_key(client: "Client", key: str | None) -> None:
    """Raise unless it is an API key, and on live accounts one whose bounds and end limit what an agent can do."""
    if not key:
        raise Failure("orders are submitted with an API key, and this caller has none", REFUSED, hint=HOW)
    missing = missing_bounds(client.me.validate_key(key))
    if missing:
        message = f"the key trades on live accounts and has no {', no '.join(missing)}"
        raise Failure(message, REFUSED, "key_not_bounded", hint=HOW)


def missing_bounds(key: "KeyValidation") -> list[str]:
    """What a live key lacks; nothing of a paper key."""
    if key.environment == "paper":
        return []
    bounds = key.bounds
    needed = {
        "bound to accounts or symbols": bounds is not None and bool(bounds.accounts or bounds.symbols),
        "budget (max_notional_per_day)": bounds is not None and bounds.max_notional_per_day is not None,
        "expiry": key.expires_at is not None,
    }
    return [name for name, has in needed.items() if not has]
