"""What a call takes from the head of its request."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.tracing.trace_context import trace_text
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_answer, format_of_body
from pilotlight_gateway.http.protocol.trace_headers import TRACEPARENT, TRACESTATE, trace_headers
from pilotlight_gateway.idempotency.key_header import KEY, PREFER

PREFIX = b"/v1/functions/"
SUFFIX = b"/calls"
STICKY = b"pilotlight-sticky"
STICKY_BYTES = 256
COHORT = b"x-"
"""Where names of headers begin that cohorts of rollouts may go by."""
NOTHING: dict[bytes, bytes] = {}
NOT_IN_REF = frozenset(b"/%?#")
"""Bytes that make a path more than a plain ref."""


class CallHead:
    """One head. Requests with the same bytes share it."""

    __slots__ = ("answer", "authorization", "key", "kind", "priority", "ref", "shown", "sticky", "traceparent", "user")

    def __init__(self, headers: dict[bytes, bytes], ref: str, authorization: bytes) -> None:
        """Read headers, whose names are in lower case; of several of one name the last.

        Raises:
            BadInput: `unsupported_media_type` or `not_acceptable`; a wrong `Pilotlight-Sticky`.
        """
        self.answer = format_of_answer(headers.get(b"accept", b""))
        self.kind = format_of_body(headers.get(b"content-type", b""))
        self.priority = headers.get(b"pilotlight-priority", b"")
        self.traceparent = trace_text(headers.get(TRACEPARENT, b""), headers.get(TRACESTATE, b""))
        """With its tracestate."""
        self.ref = ref
        self.authorization = authorization
        self.key = headers.get(KEY, b"")
        sticky = headers.get(STICKY)
        self.sticky = "" if sticky is None else sticky_text(sticky)
        """What it wants to stay on one side of a rollout; "": it does not say."""
        self.user = ""
        """The end user, where its dialect names one."""
        self.shown = {name: value for name, value in headers.items() if name.startswith(COHORT)} or NOTHING
        """Headers that cohorts go by."""


def sticky_text(value: bytes) -> str:
    """What a `Pilotlight-Sticky` header says.

    Raises:
        BadInput: it is empty, too long, or no printable ASCII.
    """
    if not 0 < len(value) <= STICKY_BYTES or not value.isascii() or not value.decode().isprintable():
        raise BadInput(
            f"Pilotlight-Sticky is to be 1 to {STICKY_BYTES} printable ASCII characters, such as the id of a user.",
            code="bad_request", field="Pilotlight-Sticky",
        )  # fmt: skip
    return value.decode()


def call_headers(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """All headers by name: of several of one name the last, but of tracestate all, which belong together."""
    known = dict(headers)
    if TRACESTATE in known:
        known |= trace_headers(headers)
    return known


def split_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Of headers those that say on which side of a rollout a call is, for a front that reads its own."""
    return {name: value for name, value in headers if name in (STICKY, KEY) or name.startswith(COHORT)}


def is_call(url: bytes) -> bool:
    """Whether a POST of this URL is a call of a plain ref."""
    return url.startswith(PREFIX) and url.endswith(SUFFIX) and len(url) > len(PREFIX) + len(SUFFIX)


def plain_head(url: bytes, headers: list[tuple[bytes, bytes]]) -> CallHead | None:
    """The head of a call that waits for nothing but its answer; None: it is a job, a stream, has a key, or is wrong."""
    ref, known = url[len(PREFIX) : -len(SUFFIX)], call_headers(headers)
    if not NOT_IN_REF.isdisjoint(ref) or not ref.isascii() or KEY in known or PREFER in known:
        return None
    if sum(name == b"authorization" for name, _ in headers) > 1:
        return None
    try:
        head = CallHead(known, ref.decode(), known.get(b"authorization", b""))
    except BadInput:
        return None
    return head if head.answer is not BodyFormat.EVENTS else None
