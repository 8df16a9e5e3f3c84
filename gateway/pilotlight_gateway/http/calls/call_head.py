"""What a call takes from the head of its request."""

from __future__ import annotations

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.tracing.trace_context import valid_traceparent
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_answer, format_of_body
from pilotlight_gateway.idempotency.key_header import KEY, PREFER

PREFIX = b"/v1/functions/"
SUFFIX = b"/calls"
NOT_IN_REF = frozenset(b"/%?#")
"""Bytes that make a path more than a plain ref."""


class CallHead:
    """One head. Requests with the same bytes share it."""

    __slots__ = ("answer", "authorization", "kind", "priority", "ref", "traceparent")

    def __init__(self, headers: dict[bytes, bytes], ref: str, authorization: bytes) -> None:
        """Read headers, whose names are in lower case; of several of one name the last.

        Raises:
            BadInput: `unsupported_media_type` or `not_acceptable`.
        """
        self.answer = format_of_answer(headers.get(b"accept", b""))
        self.kind = format_of_body(headers.get(b"content-type", b""))
        self.priority = headers.get(b"pilotlight-priority", b"")
        self.traceparent = valid_traceparent(headers.get(b"traceparent", b""))
        self.ref = ref
        self.authorization = authorization


def is_call(url: bytes) -> bool:
    """Whether a POST of this URL is a call of a plain ref."""
    return url.startswith(PREFIX) and url.endswith(SUFFIX) and len(url) > len(PREFIX) + len(SUFFIX)


def plain_head(url: bytes, headers: list[tuple[bytes, bytes]]) -> CallHead | None:
    """The head of a call that waits for nothing but its answer; None: it is a job, a stream, has a key, or is wrong."""
    ref, known = url[len(PREFIX) : -len(SUFFIX)], dict(headers)
    if not NOT_IN_REF.isdisjoint(ref) or not ref.isascii() or KEY in known or PREFER in known:
        return None
    if sum(name == b"authorization" for name, _ in headers) > 1:
        return None
    try:
        head = CallHead(known, ref.decode(), known.get(b"authorization", b""))
    except BadInput:
        return None
    return head if head.answer is not BodyFormat.EVENTS else None
