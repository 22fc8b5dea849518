"""controls' JSON, in and out."""

from controls.schemas.controls import (
    AccountLimits,
    AccountLimitsRequest,
    AccountSwitch,
    OrganizationSwitch,
    SwitchRequest,
    SymbolControlsList,
    SymbolLimits,
    SymbolLimitsRequest,
    SymbolManualControl,
    SymbolManualControlRequest,
    SymbolTimeControl,
    SymbolTimeControlRequest,
    symbol,
)
from controls.schemas.history import CONTROL_VALUE, ControlChanges
from controls.schemas.preview import PreviewAnswer, PreviewRequest, preview_answer

__all__ = [
    "CONTROL_VALUE",
    "AccountLimits",
    "AccountLimitsRequest",
    "AccountSwitch",
    "ControlChanges",
    "OrganizationSwitch",
    "PreviewAnswer",
    "PreviewRequest",
    "SwitchRequest",
    "SymbolControlsList",
    "SymbolLimits",
    "SymbolLimitsRequest",
    "SymbolManualControl",
    "SymbolManualControlRequest",
    "SymbolTimeControl",
    "SymbolTimeControlRequest",
    "preview_answer",
    "symbol",
]
