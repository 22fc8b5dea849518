"""What controls reads from its environment."""

from dataclasses import dataclass

from chassis.config import ServiceConfig


@dataclass(frozen=True)
class Config(ServiceConfig):
    """Nothing beyond what every service needs."""
