"""Errors as the callers of other tenants' functions may see them: a code and the call's id.

Messages and tracebacks of a function may hold its owner's data.
"""

from __future__ import annotations

from pilotlight_core.model.errors import (
    CODES,
    CallFailed,
    Forbidden,
    PilotlightError,
    TooMuch,
    Unauthenticated,
    error_from_code,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall

OWNERS_FIELDS = ("traceback", "type")


def redact_for_caller(error: PilotlightError, call: PreparedCall, reader: str = "") -> PilotlightError:
    """`error` as the caller may see it; unchanged if the function is the caller's own.

    Args:
        reader: the tenant whose code sees it; "": the one that pays.
    """
    if call.version.tenant == (reader or call.tenant):
        return error
    own = isinstance(error, CallFailed) or "traceback" in error.more
    if not own:
        return error
    more = {name: value for name, value in error.more.items() if name not in OWNERS_FIELDS}
    code = error.wire_code
    detail = f"{CODES[code].title}. The function's owner finds the reason under the call {call.call_id}."
    told = error_from_code(code, detail, retry_after=error.retry_after, **{**more, "call": call.call_id})
    told.course, told.is_recorded = error.course, error.is_recorded
    return told


def redact_for_function(error: PilotlightError, owner: str, payer: str) -> PilotlightError:
    """`error` as a function of `owner` may see it that runs for `payer`, whose money, limits and keys are its own."""
    if owner == payer or not isinstance(error, TooMuch | Unauthenticated | Forbidden):
        return error
    told = error_from_code(error.wire_code, CODES[error.wire_code].title)
    told.is_recorded = error.is_recorded
    return told
