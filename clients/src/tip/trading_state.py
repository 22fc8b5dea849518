"""What an account or organization may trade: set and shown."""

from time import monotonic, sleep
from typing import TYPE_CHECKING

from tip.bulk import show as show_operation
from tip.control_text import control_json
from tip.plain import short
from tip.sending import accepted, interruptible
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import BulkOperation, Client
    from tip_client.models.controls import AccountSwitch, OrganizationSwitch

POLL_S = 0.1


def set_state(
    session: Session, state: str, *, organization: bool, reason: str | None, cancel_open: bool = False
) -> "AccountSwitch | OrganizationSwitch":
    """Set it and print it."""
    switch = interruptible(None, lambda: _set(session, state, organization, reason, cancel_open))
    show(session, switch)
    return switch


def _set(
    session: Session, state: str, organization: bool, reason: str | None, cancel_open: bool
) -> "AccountSwitch | OrganizationSwitch":
    if organization:
        return session.client.controls.set_organization_state(state, reason=reason, cancel_open=cancel_open)
    return session.account_client.controls.set_trading_state(state, reason=reason, cancel_open=cancel_open)


def show(session: Session, switch: "AccountSwitch | OrganizationSwitch") -> None:
    session.out.result(control_json(switch), switch_line(switch))


def switch_line(switch: "AccountSwitch | OrganizationSwitch") -> str:
    """`account 9202138f is HALTED: loss (v3)   open orders are canceled: operation 1a2b3c4d`."""
    account = getattr(switch, "account_id", None)
    whose = f"account {short(account)}" if account else f"organization {short(switch.organization_id)}"
    reason = f": {switch.reason}" if switch.reason else ""
    operation = f"operation {short(switch.bulk_operation_id)}" if switch.bulk_operation_id else None
    canceled = f"   open orders are canceled: {operation}" if operation else ""
    return f"{whose} is {switch.trading_state}{reason} (v{switch.version}){canceled}"


def show_cancels(session: Session, operation_id: str, timeout: float) -> None:
    """Wait until every order has ended."""
    deadline = monotonic() + timeout
    hint = "the account is halted; `tip orders --open` shows what is left"
    with accepted(f"operation {short(operation_id)} was accepted", hint, None, bulk_operation_id=operation_id):
        operation = _begun(session.account_client, operation_id, deadline)
        done = operation.wait(timeout=max(0.0, deadline - monotonic()))
        if not session.out.as_json:
            show_operation(session, done)


def _begun(client: "Client", operation_id: str, deadline: float) -> "BulkOperation":
    """The operation, once the halt has come from controls to intents."""
    from tip_client import NotFound, Timeout

    while True:
        try:
            return client.bulk_operation(operation_id)
        except NotFound:
            if monotonic() > deadline:
                raise Timeout("The account is halted; the cancel of its open orders has not begun yet.") from None
        sleep(POLL_S)
