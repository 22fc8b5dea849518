"""The log epoch: whoever reads it through here also notices a restore, so the transaction has to be committed."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

_CURRENT = text("SELECT intents_api.current_log_epoch()")
_LOCK = text("LOCK TABLE intents.log_epoch IN SHARE ROW EXCLUSIVE MODE")
_BEGIN = text("""
    INSERT INTO intents.log_epoch (number, reason, database_identity)
    SELECT max(number) + 1, 'OPERATOR', intents.database_identity() FROM intents.log_epoch
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
    tx.execute(_LOCK)  # whoever notices a restore at the same moment begins one before or after it
    epoch: UUID = tx.execute(_BEGIN).scalar_one()
    return epoch


def epochs(tx: Connection) -> list[LogEpoch]:
    """All of them, oldest first."""
    return [LogEpoch(row.epoch, row.started_at, row.reason) for row in tx.execute(_HISTORY)]
