"""The errors of calls and decorators."""

from __future__ import annotations

from pilotlight_core.model.errors import (
    CODES,
    BadInput,
    BadOutput,
    CallFailed,
    Cancelled,
    Code,
    Conflict,
    ContainerDied,
    DeadlineExceeded,
    ExecutionTimeout,
    Forbidden,
    FunctionRaised,
    LoadFailed,
    NestedRefused,
    NotFound,
    PilotlightError,
    Preempted,
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
    "Misuse",
    "NestedRefused",
    "NotConfigured",
    "NotEnded",
    "NotFound",
    "OptionError",
    "PilotlightError",
    "Preempted",
    "TooMuch",
    "Unauthenticated",
    "Unavailable",
    "UnknownCall",
    "UnknownFunction",
    "Unreachable",
]


class Misuse(BadInput):
    """An error on this side of the wire; nothing was sent."""

    def __str__(self) -> str:
        return self.detail


class OptionError(Misuse, TypeError):
    """A decorator got an option that it does not take."""

    def __init__(self, detail: str, *, field: str = "") -> None:
        super().__init__(detail, field=field)


class Unreachable(Unavailable):
    """Nothing answers at the platform's address; the request was not sent."""

    code = "starting"

    @property
    def meaning(self) -> Code:
        advice = "Start a platform with 'pilotlight up', or say where it is with PILOTLIGHT_URL."
        return Code(CODES[self.wire_code].status, "The platform cannot be reached", advice, retry=True)


class NotEnded(DeadlineExceeded):
    """The time to wait for a job is over; the job goes on."""

    @property
    def meaning(self) -> Code:
        return Code(CODES[self.wire_code].status, "The job has not ended", "Wait for it again.", retry=True)


class NotConfigured(Unauthenticated):
    """There is no address or no key."""

    @property
    def meaning(self) -> Code:
        return Code(CODES[self.wire_code].status, "No platform is configured", self.advice)

    @property
    def advice(self) -> str:
        return "Start a platform with 'pilotlight up', or set PILOTLIGHT_URL and PILOTLIGHT_API_KEY."


# In tracebacks those of the core are called as users import them.
for _name in __all__:
    if globals()[_name].__module__.startswith("pilotlight_core."):
        globals()[_name].__module__ = "pilotlight"
