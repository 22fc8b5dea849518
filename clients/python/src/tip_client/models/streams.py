"""Who follows an account."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenStreams:
    """How many event streams of an account are open, of all callers."""

    account_id: str
    open: int
    by_transport: Mapping[str, int]
