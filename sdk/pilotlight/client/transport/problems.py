"""Errors from problem documents."""

from __future__ import annotations

import builtins
import re
from typing import Any

import msgspec

from pilotlight.definitions.errors import FunctionRaised, PilotlightError
from pilotlight_core.model.errors import error_from_code

KEPT = ("request_id", "field", "version", "call_id", "state", "errors", "limits", "removes", "suggestion", "stage")
LAST_LINE = re.compile(r"^([A-Za-z_][\w.]*)(?::[ \n]?(.*))?$", re.DOTALL)
"""The last line of a traceback: `ValueError: too small`."""
NOT_RAISED_AS_THEMSELVES = (StopIteration, StopAsyncIteration)
"""Exceptions that would end the loop that they pass."""
BY_STATUS = {
    400: "bad_request", 401: "unauthenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    406: "not_acceptable", 408: "deadline_exceeded", 409: "conflict", 413: "too_large", 415: "unsupported_media_type",
    422: "bad_input", 429: "rate_limited", 499: "cancelled", 502: "container_died", 503: "no_capacity",
    504: "execution_timeout",
}  # fmt: skip
"""Codes of answers without a problem document, such as a proxy's page."""


def error_of(
    status: int, body: bytes, *, retry_after: str | None = None, should_retry: str | None = None
) -> PilotlightError:
    """Return the error of an HTTP answer of 400 or more."""
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        document = None
    if isinstance(document, dict) and isinstance(told := document.get("error"), dict) and "code" not in document:
        document = {"code": told.get("code"), "detail": told.get("message", "")}  # of a route of OpenAI's API
    if not isinstance(document, dict) or not document.get("code"):
        text = body[:200].decode(errors="replace").strip()
        document = {"code": BY_STATUS.get(status, "internal"), "detail": f"The answer was HTTP {status}: {text}"}
    if should_retry is not None:
        document["should_retry"] = should_retry.lower() == "true"
    if retry_after is not None and "retry_after" not in document:
        document["retry_after"] = _seconds(retry_after)
    return error_from(document)


def error_from(document: dict[str, Any]) -> PilotlightError:
    """Return the error of a problem document."""
    code, detail = str(document.get("code", "internal")), str(document.get("detail", ""))
    retry_after = document.get("retry_after")
    more = {key: document[key] for key in (*KEPT, "should_retry") if document.get(key) is not None}
    if code == "function_raised":
        return raised(document, more)
    if traceback := document.get("traceback"):
        more["traceback"] = str(traceback)
    wait = float(retry_after) if isinstance(retry_after, int | float) else None
    error = error_from_code(code, detail, retry_after=wait, **more)
    if traceback:
        error.add_note(f"Remote traceback:\n{traceback}")
    return error


def raised(document: dict[str, Any], more: dict[str, Any]) -> FunctionRaised:
    """Return a function's exception, of the type that it raised if that is a builtin."""
    traceback = str(document.get("traceback") or "")
    kind, message = _exception(document, traceback)
    error = _make(kind, message, {**more, "traceback": traceback, "exception": kind})
    if traceback:
        error.add_note(f"Remote traceback:\n{traceback.rstrip()}")
    return error


class RemoteException(FunctionRaised):
    """The base of classes that are a FunctionRaised and a builtin, and print as the builtin."""

    __module__ = "pilotlight"

    def __str__(self) -> str:
        return self.detail


def _make(kind: str, message: str, more: dict[str, Any]) -> FunctionRaised:
    builtin = getattr(builtins, kind, None)
    if isinstance(builtin, type) and issubclass(builtin, Exception):
        if builtin is Exception or issubclass(builtin, NOT_RAISED_AS_THEMSELVES):
            return RemoteException(f"{kind}: {message}" if message else kind, code="function_raised", **more)
        try:
            return _class_of(builtin)(message or kind, code="function_raised", **more)
        except TypeError:  # its constructor wants more than a message, as UnicodeDecodeError's does
            pass
    return RemoteException(f"{kind}: {message}" if message else kind, code="function_raised", **more)


_classes: dict[type[Exception], type[FunctionRaised]] = {}


def _class_of(builtin: type[Exception]) -> type[FunctionRaised]:
    if builtin not in _classes:
        _classes[builtin] = type(f"Remote{builtin.__name__}", (RemoteException, builtin), {"__module__": "pilotlight"})
    return _classes[builtin]


def _exception(document: dict[str, Any], traceback: str) -> tuple[str, str]:
    """Return (type, message) from the detail, or from the end of the traceback."""
    lines = [str(document.get("detail", "")), *reversed(traceback.splitlines())]
    for line in lines:
        if found := LAST_LINE.match(line):
            return found[1], found[2] or ""
    return "Exception", lines[0]


def _seconds(header: str) -> float | None:
    try:
        return max(0.0, float(header))
    except ValueError:
        return None
