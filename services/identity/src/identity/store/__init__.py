"""identity's tables, and the only SQL on them: one module per noun."""

from identity.store import login_tables
from identity.store.tables import METADATA, SCHEMA

__all__ = ["METADATA", "SCHEMA", "login_tables"]
