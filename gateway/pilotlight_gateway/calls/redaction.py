"""Errors as the callers of other tenants' functions may see them: a code and the call's id.

Messages and tracebacks of a function may hold its owner's data.
"""

from __future__ import annotations

from pilotlight_core.model.errors import CODES, CallFailed, PilotlightError, error_from_code
from pilotlight_gateway.calls.prepared_call import PreparedCall

OWNERS_FIELDS = ("traceback", "type")


def redact_for_caller(error: PilotlightError, call: PreparedCall) -> PilotlightError:
    """`error` as the caller may see it; unchanged if the function is the caller's own."""
    if call.version.tenant == call.tenant:
        return error
    own = isinstance(error, CallFailed) or "traceback" in error.more
    if not own:
        return error
    more = {name: value for name, value in error.more.items() if name not in OWNERS_FIELDS}
    code = error.wire_code
    detail = f"{CODES[code].title}. The function's owner finds the reason under the call {call.call_id}."
    return error_from_code(code, detail, retry_after=error.retry_after, **{**more, "call": call.call_id})
