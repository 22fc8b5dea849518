"""Statuses of intents as SQL lists."""

from intents.model import TERMINAL, Status

ALL_SQL = ", ".join(f"'{status}'" for status in Status)
TERMINAL_SQL = ", ".join(f"'{status}'" for status in Status if status in TERMINAL)
