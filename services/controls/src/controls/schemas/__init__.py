"""controls' JSON, in and out."""

from controls.schemas.controls import (
    AccountLimits,
    AccountSwitch,
    LimitsRequest,
    OrganizationSwitch,
    SwitchRequest,
    SymbolControlsList,
    SymbolLimits,
    SymbolManualControl,
    SymbolManualControlRequest,
    SymbolTimeControl,
    SymbolTimeControlRequest,
    symbol,
)
from controls.schemas.preview import PreviewAnswer, PreviewRequest, preview_answer

__all__ = [
    "AccountLimits",
    "AccountSwitch",
    "LimitsRequest",
    "OrganizationSwitch",
    "PreviewAnswer",
    "PreviewRequest",
    "SwitchRequest",
    "SymbolControlsList",
    "SymbolLimits",
    "SymbolManualControl",
    "SymbolManualControlRequest",
    "SymbolTimeControl",
    "SymbolTimeControlRequest",
    "preview_answer",
    "symbol",
]
