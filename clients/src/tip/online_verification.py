"""`tip verify --online`: the platform follows the chain of its own log."""

from typing import TYPE_CHECKING

from tip.exits import REFUSED
from tip.plain import short
from tip.session import Session

if TYPE_CHECKING:
    from tip_client.models.trading import Verification


def verify_online(session: Session) -> None:
    found = session.account_client.verify()
    if session.out.as_json:
        session.out.document(found)
    else:
        session.out.line(verification_line(found), mark="✓" if found.valid else "✗")
    if not found.valid:
        raise SystemExit(REFUSED)


def verification_line(found: "Verification") -> str:
    """`17 entries of account 9202138f verified, up to sequence 17; signed up to sequence 15`."""
    signed = f"signed up to sequence {found.signed_sequence}" if found.signed_sequence else "signed by no head yet"
    if found.first_broken is None:
        whose = f"{found.checked} entries of account {short(found.account_id)}"
        return f"{whose} verified, up to sequence {found.last_sequence}; {signed}"
    where = f"account {short(found.account_id)} BROKEN at sequence {found.first_broken.sequence}"
    return f"{where}: {found.first_broken.reason}; {signed}"
