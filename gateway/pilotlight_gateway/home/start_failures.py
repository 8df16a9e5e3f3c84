"""What callers hear of a function whose containers cannot be started. Pure."""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_core.model.messages.call_messages import RemoteError, is_misconfigured
from pilotlight_core.model.messages.node_messages import Credit

MISCONFIGURED_RETRY_S = 30.0
MISCONFIGURED_TEXT = (
    "No container of the function can be started as the platform is set up: its operator finds the reason in the "
    "agents' logs."
)


class StartFailure(NamedTuple):
    """The error of the calls that wait: its code, detail, when to come again, and what the function raised."""

    code: str
    detail: str
    retry_after: float | None = None
    error: RemoteError | None = None


def start_failure(credit: Credit) -> StartFailure:
    """Of a container that did not become ready. What the operator has to mend is not told as the function's fault, and
    its details, which are for the operator, not at all."""
    if is_misconfigured(credit.error):
        return StartFailure("misconfigured", MISCONFIGURED_TEXT, MISCONFIGURED_RETRY_S)
    return StartFailure("load_failed", credit.reason, error=credit.error)
