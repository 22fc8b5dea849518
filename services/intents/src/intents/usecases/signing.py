"""Signing the heads of the accounts' chains: what is signed, intents' own roles cannot rewrite unnoticed either."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Engine

from chassis import logs
from intents import model, store
from intents.signing import HeadSigner

log = logs.get(__name__)

SIGNED_AT_ONCE = 500
KEPT_EVERY = timedelta(hours=1)
"""Of each account's heads one is kept for so long, or for so many entries: a statement ends with one of them."""
KEPT_EVERY_ENTRIES = 10_000


@dataclass
class SigningDeps:
    """`refused` are accounts whose head is not the continuation of what was signed; each is reported once."""

    engine: Engine
    signer: HeadSigner
    refused: set[UUID] = field(default_factory=set)


def sign_heads(deps: SigningDeps) -> int:
    """Sign the heads that have moved on, a batch of them; how many there were."""
    with deps.engine.begin() as tx:
        heads = store.heads_to_sign(tx, SIGNED_AT_ONCE, sorted(deps.refused))
        epoch = store.current_epoch(tx)
        signed = [_signed(deps, head, epoch) for head in heads if head.continues]
        if signed:
            store.publish_signing_key(tx, deps.signer.key_id, deps.signer.public_key)
            store.save_signed_heads(tx, signed)
            store.keep_signed_heads(tx, [head.account_id for head in signed], KEPT_EVERY_ENTRIES, KEPT_EVERY)
    for head in heads:
        if not head.continues:
            log.error("head_not_signed", account_id=str(head.account_id), sequence=head.sequence)
            deps.refused.add(head.account_id)
    return len(heads)


def _signed(deps: SigningDeps, head: store.HeadToSign, epoch: UUID) -> model.SignedHead:
    unsigned = model.SignedHead(
        head.account_id, head.organization_id, head.sequence, head.hash, epoch, head.read_at, deps.signer.key_id, b""
    )
    return deps.signer.sign(unsigned)
