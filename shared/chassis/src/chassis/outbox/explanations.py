"""What the states and errors of outbox rows mean, for whoever runs the platform."""

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "pending": "It waits for a relay. With attempts, it was tried before and waits for its next turn.",
    "processing": "A relay has claimed it. A claim older than five seconds is taken back by the next relay.",
    "completed": "It was delivered. Nothing is left to do.",
    "failed": "It reached the attempt limit and is never tried again by itself. Repair the cause, then redrive it.",
}
_CAUSES: Mapping[str, str] = {
    "worker_lost": "its relay vanished during the last attempt: it may be what kills relays",
    "vault_unavailable": "the vault was out of reach; no attempt was counted",
    "database_unavailable": "the database was out of reach; no attempt was counted",
    "out_of_time": "there was no time left for it in its batch; no attempt was counted",
    "behind_another": "a row before it with the same ordering key was not done; no attempt was counted",
    "BrokenSeal": "a sealed secret was altered or moved, or is under another key",
    "UnknownKey": "a secret is sealed under a key that the relay was not given (EARLIER_VAULT_KEY_ENCRYPTION_KEYS)",
    "Refused": "the vault refuses this object",
}


def cause_of(error: str) -> str:
    """What an error in `last_error` says of the row."""
    return _CAUSES.get(error, f"the work of the row raised {error}")
