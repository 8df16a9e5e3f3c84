"""The errors that callers get of failed calls."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.errors import (
    BadInput,
    BadOutput,
    ContainerDied,
    ExecutionTimeout,
    FunctionRaised,
    LoadFailed,
    PilotlightError,
    error_from_code,
)
from pilotlight_core.model.messages.call_messages import Ended, Outcome, RemoteError
from pilotlight_core.model.messages.scheduling import Dropped


def failure(ended: Ended) -> PilotlightError:
    """The error of a call that its function failed."""
    match ended.outcome:
        case Outcome.LOAD_FAILED:
            return LoadFailed(_sentence(ended.error, ended.reason), **_more(ended.error))
        case Outcome.TIMEOUT:
            return ExecutionTimeout(ended.reason)
        case Outcome.BAD_INPUT:
            detail = ended.error.message if ended.error is not None else ended.reason
            return BadInput(detail, field="input")
        case Outcome.BAD_OUTPUT:
            return BadOutput(_sentence(ended.error, ended.reason), **_more(ended.error))
        case _:
            return FunctionRaised(_sentence(ended.error, ended.reason), **_more(ended.error))


def died(reason: str) -> ContainerDied:
    """The error of a call that was lost with its container."""
    return ContainerDied(f"The container died during the call: {reason or 'no reason is known'}.")


def dropped_error(dropped: Dropped) -> PilotlightError:
    """The error of a call that its home dropped."""
    sentence = _sentence(dropped.error, dropped.detail)
    more = _more(dropped.error) | ({"limits": list(dropped.limits)} if dropped.limits else {})
    return error_from_code(dropped.code, sentence, retry_after=dropped.retry_after, **more)


def _sentence(error: RemoteError | None, reason: str) -> str:
    return f"{error.type}: {error.message}" if error is not None else reason


def _more(error: RemoteError | None) -> dict[str, Any]:
    return {"traceback": error.traceback, "type": error.type} if error is not None else {}
