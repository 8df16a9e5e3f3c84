"""Sampled calls as spans in protobuf, written at once: where all calls are kept, most of what that costs is this.

They are the spans that `span_tree` makes of the same call, by a form for each kind: what its calls have in common is
made by `span_tree` and written by `otlp_encoding` once, and of each call only ids and times are added, whose fields
have one length. Fields of a message may stand in any order, so what varies stands together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.sampled_call import SampledKind, SampledRecord, SampledTimes
from pilotlight_core.model.tracing.trace_context import (
    EXECUTE,
    MASK_64,
    OTHERS,
    ROOT,
    SPAN_STEP,
    number_of,
    parse_traceparent,
    span_number,
    trace_number,
)
from pilotlight_gateway.traces.call_segments import LEAST_MS
from pilotlight_gateway.traces.otlp_encoding import (
    BEGIN,
    END,
    attribute,
    link_message,
    named_span,
    span_message,
    varint,
)
from pilotlight_gateway.traces.span_tree import Span, spans_of

MOST_FORMS = 1_024
MOST_LENGTHS = 16
"""Lengths of calls' ids that a form remembers: a region's all have one."""
ID = "faas.invocation_id"
TRACE_ID, SPAN_ID, PARENT_ID = 0x100A, 0x0812, 0x0822
"""Tags with the lengths behind them, the lowest byte first."""
ROOT_SPAN = struct.Struct("<H16sHQBQBQ")
"""Trace, span, begin and end."""
OF_CALL = struct.Struct("<H16sHQH")
"""Of each of its children: trace and parent, and the tag of its own id."""
CHILD_SPAN = struct.Struct("<QBQBQ")
"""Its own id, begin and end."""
STEPS = tuple([place * SPAN_STEP & MASK_64 for place in range(OTHERS + 8)])
STAGE_MS = 1.0
RUNS = 5
"""The place of `execute` among the stages."""


class SpanForm:
    """What the spans of all calls of one kind have in common."""

    def __init__(self, kind: SampledKind) -> None:
        each = (STAGE_MS,) * 6
        spans = spans_of(SampledRecord(kind, SampledTimes("", 0, STAGE_MS * 7, *each)).whole(""))
        self._root = spans[0]
        self.stages = tuple([_head(_fixed(span), OF_CALL.size + CHILD_SPAN.size) for span in spans[1:]])
        """Of gateway, queue, start, transport, batch_wait, execute and respond."""
        self.execute = _fixed(spans[1 + RUNS])
        """What of it has links is longer."""
        self._roots: dict[int, tuple[bytes, bytes]] = {}

    def root(self, length: int) -> tuple[bytes, bytes]:
        """What comes before a root's ids and times, and between these and a call's id of so many bytes."""
        known = self._roots.get(length)
        if known is None:
            if len(self._roots) >= MOST_LENGTHS:
                self._roots.clear()
            name = attribute(9, ID, "x" * length)
            known = self._roots[length] = (
                _head(_fixed(self._root), ROOT_SPAN.size + len(name)),
                name[: len(name) - length],
            )
        return known


class SpanForms:
    """Those of kinds that came lately, by which calls are written."""

    def __init__(self) -> None:
        self._known: dict[SampledKind, SpanForm] = {}

    def __len__(self) -> int:
        return len(self._known)

    def messages(self, calls: Iterable[KeptCall | SampledRecord]) -> list[bytes]:
        """The spans of calls, in pieces, as `otlp_encoding.request_of` takes them."""
        pieces: list[bytes] = []
        last: SampledKind | None = None
        form: SpanForm | None = None
        for call in calls:
            if isinstance(call, SampledRecord):
                if form is None or call.kind is not last:
                    last, form = call.kind, self._form(call.kind)
                _write(form, call.times, pieces)
            else:
                pieces += [span_message(span) for span in spans_of(call)]
        return pieces

    def _form(self, kind: SampledKind) -> SpanForm:
        known = self._known.get(kind)
        if known is None:
            if len(self._known) >= MOST_FORMS:
                self._known.clear()
            known = self._known[kind] = SpanForm(kind)
        return known


def _fixed(span: Span) -> bytes:
    """All of a span but ids, times and a call's id."""
    attributes = [attribute(9, name, value) for name, value in span.attributes.items() if name != ID]
    return b"".join([named_span(span.name, span.kind, span.trace_state), *attributes])


def _head(fixed: bytes, more: int) -> bytes:
    """The beginning of a span, of which `more` bytes are to come."""
    return b"\x12" + varint(len(fixed) + more) + fixed


def _write_links(form: SpanForm, mates: Iterable[str], pieces: list[bytes]) -> None:
    """The beginning of the span of a call's execution, which is linked to those of its batch."""
    found = [parse_traceparent(each) for each in mates]
    links = b"".join([link_message(each) for each in found if each is not None])
    pieces.append(_head(form.execute + links, OF_CALL.size + CHILD_SPAN.size))


def _write(form: SpanForm, times: SampledTimes, pieces: list[bytes]) -> None:
    """A call's spans, of which those of stages that took no time are left out."""
    name, number, begin = times.id.encode(errors="replace"), number_of(times.id), times.arrived_ns
    trace, root = trace_number(number).to_bytes(16, "big"), span_number(number, ROOT)
    before, between = form.root(len(name))
    end = begin + round(times.total_ms * 1e6)
    pieces.append(before)
    pieces.append(ROOT_SPAN.pack(TRACE_ID, trace, SPAN_ID, root, BEGIN, begin, END, end))
    pieces.append(between)
    pieces.append(name)
    of_call = OF_CALL.pack(TRACE_ID, trace, PARENT_ID, root, SPAN_ID)
    at, place, heads, since = 0.0, OTHERS, form.stages, begin
    stages = (times.gateway, times.queue, times.start, times.transport, times.batch_wait, times.execute)
    for stage, ms in enumerate(stages):
        if ms > LEAST_MS:
            at += ms
            until = since + round(at * 1e6)
            own = root + STEPS[EXECUTE if stage == RUNS else place] & MASK_64
            if stage == RUNS and times.mates:
                _write_links(form, times.mates, pieces)
            else:
                pieces.append(heads[stage])
            pieces.append(of_call)
            pieces.append(CHILD_SPAN.pack(own, BEGIN, begin, END, until))
            begin, place = until, place + 1
    if (ms := times.total_ms - at) > LEAST_MS:
        until = since + round((at + ms) * 1e6)
        pieces.append(heads[6])
        pieces.append(of_call)
        pieces.append(CHILD_SPAN.pack(root + STEPS[place] & MASK_64, BEGIN, begin, END, until))
