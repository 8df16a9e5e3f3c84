"""The heads of calls."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.http.calls.call_head import (
    CallHead,
    is_call,
    plain_head,
    split_headers,
    sticky_text,
)

URL = b"/v1/functions/shop.hello/calls"
KEY = (b"authorization", b"Bearer x")
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


def test_a_plain_head_is_read_whole() -> None:
    head = plain_head(URL, [KEY, (b"accept", b"application/msgpack"), (b"traceparent", TRACE.encode())])
    assert head is not None
    assert (head.ref, head.authorization, head.priority) == ("shop.hello", b"Bearer x", b"")
    assert (head.kind, head.answer, head.traceparent) == (BodyFormat.JSON, BodyFormat.MSGPACK, TRACE)


def test_a_tracestate_goes_with_its_traceparent() -> None:
    """However many headers it came in; a malformed one is left out."""
    sent = [KEY, (b"traceparent", TRACE.encode()), (b"tracestate", b"a=1"), (b"tracestate", b"b=2")]
    head = plain_head(URL, sent)
    assert head is not None
    assert head.traceparent == f"{TRACE} a=1,b=2"
    head = plain_head(URL, [*sent, (b"tracestate", b"what")])
    assert head is not None
    assert head.traceparent == TRACE


@pytest.mark.parametrize(
    ("url", "more"),
    [
        (URL, [KEY]),
        (URL, [(b"accept", b"text/event-stream")]),
        (URL, [(b"accept", b"image/png")]),
        (URL, [(b"content-type", b"text/csv")]),
        (URL, [(b"prefer", b"respond-async")]),
        (URL, [(b"idempotency-key", b"k")]),
        (b"/v1/functions/shop%2Ehello/calls", []),
        (b"/v1/functions/a/b/calls", []),
        (b"/v1/functions/x?/calls", []),
        (b"/v1/functions/\xff/calls", []),
    ],
)
def test_what_waits_for_more_or_is_wrong_is_not_plain(url: bytes, more: list[tuple[bytes, bytes]]) -> None:
    """Two keys, streams, jobs, idempotency keys, media types that are refused, refs that must be decoded."""
    assert plain_head(url, [KEY, *more]) is None


def test_the_url_of_a_call() -> None:
    assert is_call(URL)
    assert not is_call(b"/v1/functions/calls")
    assert not is_call(b"/v1/functions//calls")
    assert not is_call(URL + b"?x")
    assert not is_call(b"/v1/jobs/shop.hello/calls")


@pytest.mark.parametrize("value", [b"", b"x" * 257, b"a\tb", b"\xff"])
def test_what_cannot_be_sticky_is_refused_by_name(value: bytes) -> None:
    with pytest.raises(BadInput) as refused:
        sticky_text(value)
    assert refused.value.more["field"] == "Pilotlight-Sticky"


def test_a_head_keeps_what_splits_go_by() -> None:
    headers = {b"pilotlight-sticky": b"user-7", b"x-ring": b"inner", b"idempotency-key": b"k", b"accept": b"*/*"}
    head = CallHead(headers, "shop.hello", b"")
    assert (head.sticky, head.key, dict(head.shown)) == ("user-7", b"k", {b"x-ring": b"inner"})
    assert CallHead({}, "shop.hello", b"").sticky == ""


def test_a_front_passes_on_what_splits_go_by() -> None:
    """Who it is, and the headers of cohorts; the rest is read by the front itself."""
    sent = [(b"pilotlight-sticky", b"ann"), (b"x-ring", b"inner"), (b"idempotency-key", b"k"), (b"accept", b"*/*")]

    assert split_headers(sent) == dict(sent[:3])
