"""The log epoch: whoever reads it through here also notices a restore, so the transaction has to be committed."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

_CURRENT = text("SELECT intents_api.current_log_epoch()")
_BEGIN = text("""
    INSERT INTO intents.log_epoch (reason, database_identity) VALUES ('OPERATOR', intents.database_identity())
    RETURNING epoch
""")
_HISTORY = text("SELECT epoch, started_at, reason FROM intents.log_epoch ORDER BY number")


class LogEpoch(NamedTuple):
    epoch: UUID
    started_at: datetime
    reason: str


def current_epoch(tx: Connection) -> UUID:
    """The newest epoch, begun here if the database was restored since the last one began."""
    epoch: UUID = tx.execute(_CURRENT).scalar_one()
    return epoch


def begin_epoch(tx: Connection) -> UUID:
    """A new epoch by an operator's word; the service's own role may not do it."""
    epoch: UUID = tx.execute(_BEGIN).scalar_one()
    return epoch


def epochs(tx: Connection) -> list[LogEpoch]:
    """All of them, oldest first."""
    return [LogEpoch(*row) for row in tx.execute(_HISTORY)]
