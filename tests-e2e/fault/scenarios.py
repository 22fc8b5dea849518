"""All scenarios by name."""

import scenarios_bulk
import scenarios_controls
import scenarios_credentials
import scenarios_fills
import scenarios_groups
import scenarios_lag
import scenarios_late
from fault_scenario import SCENARIOS

__all__ = [
    "SCENARIOS",
    "scenarios_bulk",
    "scenarios_controls",
    "scenarios_credentials",
    "scenarios_fills",
    "scenarios_groups",
    "scenarios_lag",
    "scenarios_late",
]
