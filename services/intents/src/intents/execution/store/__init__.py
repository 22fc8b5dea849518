"""The only SQL of execution. Every moment is the database's; many intents are taken and settled by one statement each.

Locks are taken in one order everywhere: intents by account and id, then heads by account.
"""

from intents.execution.store.claiming import Shares, claim, locked_at_claim, refresh
from intents.execution.store.leases import holders, release
from intents.execution.store.locking import lock_intents
from intents.execution.store.writing import write

__all__ = ["Shares", "claim", "holders", "lock_intents", "locked_at_claim", "refresh", "release", "write"]
