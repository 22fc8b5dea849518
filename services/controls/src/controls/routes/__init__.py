"""controls over HTTP: one module per noun.

All register their routes on one blueprint when they are imported: its name is part of every operation id.
"""

from controls import model
from controls.routes import accounts, history, organization, preview, symbols
from controls.routes.common import bp

__all__ = ["STATUSES", "accounts", "bp", "history", "organization", "preview", "symbols"]

STATUSES: dict[type[Exception], int] = {
    model.AccountNotFound: 404,
    model.ControlNotFound: 404,
    model.WrongEnvironment: 403,
    model.EntitlementRequired: 403,
    model.VersionMismatch: 412,
    model.EmptyWindow: 422,
    model.NothingToDo: 422,
}
