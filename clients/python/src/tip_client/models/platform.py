"""The platform itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PlatformInfo:
    """What one request, which is not repeated, shows of the platform."""

    version: str
    answered_in: float
    """Seconds."""
    clock_offset: float | None
    """Seconds that the platform's clock is ahead of this one; 0 within a second, None where it shows no time."""
