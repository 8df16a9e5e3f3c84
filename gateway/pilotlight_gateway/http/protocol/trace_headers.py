"""The headers that say to which trace a request belongs."""

from __future__ import annotations

from collections.abc import Iterable

TRACEPARENT, TRACESTATE = b"traceparent", b"tracestate"


def trace_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Of headers those that say to which trace a call belongs."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name == TRACEPARENT:
            found[name] = value
        elif name == TRACESTATE:
            found[name] = found[name] + b"," + value if name in found else value
    return found
