"""The trace of a request."""

from __future__ import annotations

from pilotlight_gateway.http.protocol.trace_headers import trace_headers


def test_a_tracestate_may_come_in_several_headers() -> None:
    """In their order; of traceparents the last counts, and other headers are left out."""
    sent = [(b"tracestate", b"a=1"), (b"traceparent", b"x"), (b"accept", b"*/*"), (b"tracestate", b"b=2"),
            (b"traceparent", b"y")]  # fmt: skip
    assert trace_headers(sent) == {b"traceparent": b"y", b"tracestate": b"a=1,b=2"}
    assert trace_headers([]) == {}
