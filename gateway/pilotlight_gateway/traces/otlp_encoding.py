"""Spans as the body of OTLP over HTTP: protobuf's `ExportTraceServiceRequest`.

Every collector takes protobuf, and some take nothing else. The messages that spans need have a dozen fields, which are
written here by number, so that the duties need no library that comes with generated code. A test reads the result with
OpenTelemetry's own classes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from pilotlight_gateway.traces.span_tree import SCHEMA_URL, AttributeValue, Span

VARINT, FIXED64, BYTES = 0, 1, 2
"""Wire types."""
STATUS_ERROR = 2
SCOPE = "pilotlight"


def export_request(spans: Iterable[Span], resource: Mapping[str, AttributeValue]) -> bytes:
    """The body of one request: `spans`, all of one `resource`."""
    scope_spans = _message(1, _text(1, SCOPE)) + b"".join(_message(2, _span(span)) for span in spans)
    scope_spans += _text(3, SCHEMA_URL)
    resource_spans = _message(1, _attributes(1, resource)) + _message(2, scope_spans) + _text(3, SCHEMA_URL)
    return _message(1, resource_spans)


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


def _span(span: Span) -> bytes:
    parts = [
        _bytes(1, bytes.fromhex(span.trace_id)),
        _bytes(2, bytes.fromhex(span.span_id)),
        _text(3, span.trace_state),
        _bytes(4, bytes.fromhex(span.parent)),
        _text(5, span.name),
        _number(6, span.kind),
        _tag(7, FIXED64) + struct.pack("<Q", span.begin_ns),
        _tag(8, FIXED64) + struct.pack("<Q", span.end_ns),
        _attributes(9, span.attributes),
    ]
    parts += [
        _message(
            13, _bytes(1, bytes.fromhex(link.trace_id)) + _bytes(2, bytes.fromhex(link.span_id)) + _text(3, link.state)
        )
        for link in span.links
    ]
    if span.error:
        parts.append(_message(15, _text(2, span.error) + _number(3, STATUS_ERROR)))
    return b"".join(parts)


def _attributes(field: int, attributes: Mapping[str, AttributeValue]) -> bytes:
    return b"".join(
        _message(field, _text(1, name) + _message(2, _any_value(value))) for name, value in attributes.items()
    )


def _any_value(value: AttributeValue) -> bytes:
    if isinstance(value, bool):
        return _tag(2, VARINT) + _varint(value)
    if isinstance(value, int):
        return _tag(3, VARINT) + _varint(value)
    if isinstance(value, float):
        return _tag(4, FIXED64) + struct.pack("<d", value)
    data = value.encode(errors="replace")
    return _tag(1, BYTES) + _varint(len(data)) + data


def _message(field: int, body: bytes) -> bytes:
    return _tag(field, BYTES) + _varint(len(body)) + body


def _bytes(field: int, data: bytes) -> bytes:
    return _message(field, data) if data else b""


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode(errors="replace"))


def _number(field: int, number: int) -> bytes:
    return _tag(field, VARINT) + _varint(number) if number else b""


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    number &= 2**64 - 1  # a negative one is written as its complement
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
