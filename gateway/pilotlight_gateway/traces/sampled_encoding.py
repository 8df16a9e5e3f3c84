"""Sampled calls as spans in protobuf, written at once: where all calls are kept, most of what that costs is this.

They are the spans that `span_tree` makes of the same call, by a form for each kind: what its calls have in common is
made by `span_tree` and written by `otlp_encoding` once, and of each call only ids and times are added, whose fields
have one length. Fields of a message may stand in any order, so what varies stands together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import msgspec
import structlog

from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.packed_calls import HEAD, BadSheet, mates_of
from pilotlight_core.model.tracing.sampled_call import SampledKind, SampledRecord, SampledSheet, SampledTimes
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
ROOT_SPAN = "H16sHQBQBQ"
"""Trace, span, begin and end."""
OF_CALL = struct.Struct("<H16sHQH")
"""Of each of its children: trace and parent, and the tag of its own id."""
CHILD_SPAN = f"{OF_CALL.size}sQBQBQ"
"""That, its own id, begin and end."""
ROOT_BYTES, CHILD_BYTES = struct.calcsize(f"<{ROOT_SPAN}"), struct.calcsize(f"<{CHILD_SPAN}")
STEPS = tuple([place * SPAN_STEP & MASK_64 for place in range(OTHERS + 8)])
STAGE_MS = 1.0
RUNS, RESPOND = 5, 6
"""The places of these among the stages."""

log = structlog.get_logger(__name__)


class SpanHead:
    """What stands at the beginning of a span, and how the rest of it is written behind."""

    def __init__(self, fixed: bytes, more: int, rest: str) -> None:
        """`more`: the bytes of the `rest`."""
        self.bytes = b"\x12" + varint(len(fixed) + more) + fixed
        self.pack: Callable[..., bytes] = struct.Struct(f"<{len(self.bytes)}s{rest}").pack


class SpanForm:
    """What the spans of all calls of one kind have in common."""

    def __init__(self, kind: SampledKind) -> None:
        each = (STAGE_MS,) * 6
        spans = spans_of(SampledRecord(kind, SampledTimes("", 0, STAGE_MS * 7, *each)).whole(""))
        self._root = spans[0]
        self.stages = [SpanHead(_fixed(span), CHILD_BYTES, CHILD_SPAN) for span in spans[1:]]
        """Of gateway, queue, start, transport, batch_wait, execute and respond."""
        self._execute = _fixed(spans[1 + RUNS])
        self._roots: dict[int, tuple[SpanHead, bytes]] = {}

    def root(self, length: int) -> tuple[SpanHead, bytes]:
        """The head of a root, and what stands between its times and a call's id of so many bytes."""
        known = self._roots.get(length)
        if known is None:
            if len(self._roots) >= MOST_LENGTHS:
                self._roots.clear()
            name = attribute(9, ID, "x" * length)
            between = name[: len(name) - length]
            rest = f"{ROOT_SPAN}{len(between)}s{length}s"
            known = self._roots[length] = (SpanHead(_fixed(self._root), ROOT_BYTES + len(name), rest), between)
        return known

    def linked(self, mates: Iterable[str]) -> SpanHead:
        """The head of the span of a call's execution, which is linked to those of its batch."""
        found = [parse_traceparent(each) for each in mates]
        links = b"".join([link_message(each) for each in found if each is not None])
        return SpanHead(self._execute + links, CHILD_BYTES, CHILD_SPAN)


class SpanForms:
    """Those of kinds that came lately, by which calls are written."""

    def __init__(self) -> None:
        self._known: dict[SampledKind, SpanForm] = {}

    def __len__(self) -> int:
        return len(self._known)

    def messages(self, told: Iterable[KeptCall | SampledSheet]) -> list[bytes]:
        """The spans of calls, in pieces, as `otlp_encoding.request_of` takes them; of a sheet that is none, nothing."""
        pieces: list[bytes] = []
        for each in told:
            if isinstance(each, SampledSheet):
                before = len(pieces)
                try:
                    self._write_all(each, pieces)
                except (struct.error, ValueError, ArithmeticError, LookupError, msgspec.DecodeError):
                    del pieces[before:]
                    log.warning("sampled calls that cannot be read are not exported", calls=each.count)
            else:
                pieces += [span_message(span) for span in spans_of(each)]
        return pieces

    def _write_all(self, sheet: SampledSheet, pieces: list[bytes]) -> None:
        forms, records, at = [self._form(kind) for kind in sheet.kinds], sheet.records, 0
        while at < len(records):
            at = _write(forms, records, at, pieces)

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


def _write(forms: list[SpanForm], records: bytes, at: int, pieces: list[bytes]) -> int:
    """A call's spans, of which those of stages that took no time are left out; returns where the next call begins."""
    place, named, told, _, arrived, total_ms, *stages = HEAD.unpack_from(records, at)
    form: SpanForm = forms[place]
    begin_ns: int = arrived
    middle = at + HEAD.size + named
    if middle + told > len(records):
        raise BadSheet("its last call is cut off")
    name, number = records[middle - named : middle], number_of(records[middle - named : middle].decode())
    trace, root = trace_number(number).to_bytes(16, "big"), span_number(number, ROOT)
    head, between = form.root(len(name))
    end = begin_ns + round(total_ms * 1e6)
    pieces.append(
        head.pack(head.bytes, TRACE_ID, trace, SPAN_ID, root, BEGIN, begin_ns, END, end, between, name)
    )  # fmt: skip
    of_call = OF_CALL.pack(TRACE_ID, trace, PARENT_ID, root, SPAN_ID)
    took, nth, heads, begin = 0.0, OTHERS, form.stages, begin_ns
    for stage, ms in enumerate(stages):
        if ms > LEAST_MS:
            took += ms
            until = begin_ns + round(took * 1e6)
            if stage == RUNS:
                own = root + STEPS[EXECUTE] & MASK_64
                head = form.linked(mates_of(records[middle : middle + told])) if told else heads[RUNS]
            else:
                own, head = root + STEPS[nth] & MASK_64, heads[stage]
            pieces.append(head.pack(head.bytes, of_call, own, BEGIN, begin, END, until))
            begin, nth = until, nth + 1
    if (ms := total_ms - took) > LEAST_MS:
        until = begin_ns + round((took + ms) * 1e6)
        head = heads[RESPOND]
        pieces.append(head.pack(head.bytes, of_call, root + STEPS[nth] & MASK_64, BEGIN, begin, END, until))
    return int(middle + told)
