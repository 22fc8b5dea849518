"""A signed head: where the chain of an account had come to, as somebody attests who cannot write the chain."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from intents.model.chain import Broken


class SignedHead(NamedTuple):
    """`hash` is that of the account's last entry at `sequence`; it covers every entry before."""

    account_id: UUID
    organization_id: UUID
    sequence: int
    hash: bytes
    epoch: UUID
    signed_at: datetime
    key_id: str
    signature: bytes

    @property
    def message(self) -> bytes:
        """What is signed: the same text in whatever time zone a database session shows the moment."""
        signed_at = self.signed_at.astimezone(UTC).isoformat(timespec="microseconds")
        parts = (self.account_id, self.epoch, self.sequence, self.hash.hex(), signed_at)
        return "\n".join(("tip signed head 1", *map(str, parts))).encode()


def check_signed_head(
    head: SignedHead, last_sequence: int, logged_hash: bytes | None, *, signature_is_valid: bool
) -> Broken | None:
    """What is wrong with a log that ends at `last_sequence` and has `logged_hash` at the place that was signed."""
    if not signature_is_valid:
        return Broken(head.sequence, None, "signature_does_not_hold")
    if head.sequence > last_sequence:
        return Broken(last_sequence + 1, None, "signed_actions_missing")
    if head.hash != logged_hash:
        return Broken(head.sequence, None, "differs_from_signed_head")
    return None
