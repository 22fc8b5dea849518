"""The tip command."""
