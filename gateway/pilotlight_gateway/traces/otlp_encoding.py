"""Spans as the body of OTLP over HTTP: protobuf's `ExportTraceServiceRequest`.

Every collector takes protobuf, and some take nothing else. The messages that spans need have a dozen fields, which are
written here by number, so that the duties need no library that comes with generated code. A test reads the result with
OpenTelemetry's own classes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache

from pilotlight_core.model.tracing.trace_context import TraceContext
from pilotlight_gateway.traces.span_tree import SCHEMA_URL, AttributeValue, Span

VARINT, BYTES = 0, 2
"""Wire types."""
STATUS_ERROR = 2
SCOPE = "pilotlight"
SMALL = tuple([bytes([number]) for number in range(128)])
"""The varints of one byte."""
TIMES = struct.Struct("<BQBQ")
"""The fields 7 and 8 of a span, with their tags: its begin and its end."""
FLOAT = struct.Struct("<Bd")
BEGIN, END = 7 << 3 | 1, 8 << 3 | 1
REPEATED_ATTRIBUTES, SHORT = 2_048, 64
"""So many attributes with values of so many characters are not written anew each time."""


def export_request(spans: Iterable[Span], resource: Mapping[str, AttributeValue]) -> bytes:
    """The body of one request: `spans`, all of one `resource`."""
    return request_of([span_message(span) for span in spans], resource)


def request_of(spans: Iterable[bytes], resource: Mapping[str, AttributeValue]) -> bytes:
    """The same of spans as `span_message` writes them."""
    # Some hundred kB, put together once: each copy more would take a fifth of what the spans do.
    schema = text(3, SCHEMA_URL)
    scope_spans = [message(1, text(1, SCOPE)), *spans, schema]
    size = sum([len(each) for each in scope_spans])
    before = message(1, _attributes(1, resource)) + _tag(2, BYTES) + varint(size)
    whole = _tag(1, BYTES) + varint(len(before) + size + len(schema))
    return b"".join([whole, before, *scope_spans, schema])


def span_message(span: Span) -> bytes:
    """A span, as the field of what has several."""
    parts = [
        b"\x0a\x10", bytes.fromhex(span.trace_id), b"\x12\x08", bytes.fromhex(span.span_id),
        named_span(span.name, span.kind, span.trace_state), TIMES.pack(BEGIN, span.begin_ns, END, span.end_ns),
        _attributes(9, span.attributes),
    ]  # fmt: skip
    if span.parent:
        parts.append(_data(4, bytes.fromhex(span.parent)))
    parts += [link_message(link) for link in span.links]
    if span.error:
        parts.append(message(15, text(2, span.error) + _tag(3, VARINT) + SMALL[STATUS_ERROR]))
    return message(2, b"".join(parts))


def link_message(link: TraceContext) -> bytes:
    """A link to another span, as the field of a span."""
    ids = b"\x0a\x10" + bytes.fromhex(link.trace_id) + b"\x12\x08" + bytes.fromhex(link.span_id)
    return message(13, ids + text(3, link.state))


def named_span(name: str, kind: int, trace_state: str) -> bytes:
    """The fields of a span that say what it is."""
    return text(3, trace_state) + text(5, name) + _tag(6, VARINT) + SMALL[kind]


def attribute(field: int, name: str, value: AttributeValue) -> bytes:
    """An attribute, as this field."""
    return message(field, text(1, name) + message(2, _any_value(value)))


def rejected_spans(answer: bytes) -> int:
    """How many spans a collector says, in an `ExportTraceServiceResponse`, that it did not take."""
    # partial_success (1) is a message, whose rejected_spans (1) is a varint.
    if len(answer) < 3 or answer[0] != 1 << 3 | BYTES or answer[2] != 1 << 3 | VARINT:
        return 0
    number = 0
    for place, byte in enumerate(answer[3:13]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number
    return 0


repeated_attribute = lru_cache(REPEATED_ATTRIBUTES, typed=True)(attribute)
"""The same, kept for the next time: nearly all are those of the calls before."""


def _attributes(field: int, attributes: Mapping[str, AttributeValue]) -> bytes:
    return b"".join(
        [
            repeated_attribute(field, name, value)
            if not isinstance(value, str) or len(value) <= SHORT
            else attribute(field, name, value)
            for name, value in attributes.items()
        ]
    )


def _any_value(value: AttributeValue) -> bytes:
    if isinstance(value, bool):
        return _tag(2, VARINT) + varint(value)
    if isinstance(value, int):
        return _tag(3, VARINT) + varint(value)
    if isinstance(value, float):
        return FLOAT.pack(4 << 3 | 1, value)
    data = value.encode(errors="replace")
    return _tag(1, BYTES) + varint(len(data)) + data


def message(field: int, body: bytes) -> bytes:
    """A message, or a string of bytes, as this field."""
    return _tag(field, BYTES) + varint(len(body)) + body


def _data(field: int, data: bytes) -> bytes:
    return message(field, data) if data else b""


def text(field: int, value: str) -> bytes:
    """A string; b"" if it is empty."""
    return _data(field, value.encode(errors="replace"))


def _tag(field: int, wire: int) -> bytes:
    return SMALL[field << 3 | wire]  # no field here has a number beyond 15


def varint(number: int) -> bytes:
    """A whole number; a negative one is written as its complement."""
    if 0 <= number < 128:
        return SMALL[number]
    number &= 2**64 - 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
