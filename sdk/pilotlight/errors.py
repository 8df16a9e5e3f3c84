"""The errors that calls raise, and the one that decorators raise."""

from __future__ import annotations

from pilotlight_core.model.errors import (
    BadInput,
    BadOutput,
    CallFailed,
    Cancelled,
    Conflict,
    ContainerDied,
    DeadlineExceeded,
    ExecutionTimeout,
    Forbidden,
    FunctionRaised,
    LoadFailed,
    NotFound,
    PilotlightError,
    TooMuch,
    Unauthenticated,
    Unavailable,
    UnknownCall,
    UnknownFunction,
)

__all__ = [
    "BadInput",
    "BadOutput",
    "CallFailed",
    "Cancelled",
    "Conflict",
    "ContainerDied",
    "DeadlineExceeded",
    "ExecutionTimeout",
    "Forbidden",
    "FunctionRaised",
    "LoadFailed",
    "NotFound",
    "OptionError",
    "PilotlightError",
    "TooMuch",
    "Unauthenticated",
    "Unavailable",
    "UnknownCall",
    "UnknownFunction",
]


class OptionError(BadInput, TypeError):
    """A decorator was given something that it does not take; says what to write instead."""

    def __init__(self, detail: str, *, field: str = "") -> None:
        super().__init__(detail, field=field)

    def __str__(self) -> str:
        return self.detail
