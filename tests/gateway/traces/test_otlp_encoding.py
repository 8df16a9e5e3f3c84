"""Spans as protobuf, read by OpenTelemetry's own classes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pilotlight_core.model.tracing.kept_call import KeptWhy
from pilotlight_core.model.tracing.trace_context import parse_traceparent
from pilotlight_gateway.traces.otlp_encoding import export_request, rejected_spans
from pilotlight_gateway.traces.span_tree import SCHEMA_URL, AttributeValue, Span, spans_of
from tests.builders.kept import kept_call
from tests.gateway.traces.test_span_tree import PARENT

value = st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)


def read(spans: list[Span], **resource: AttributeValue) -> Any:
    return ExportTraceServiceRequest.FromString(export_request(spans, resource)).resource_spans[0]


def plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def test_a_call_is_read_as_it_was_written() -> None:
    """Every field of every span."""
    spans = spans_of(kept_call(kept=KeptWhy.SAMPLED, threshold="fd7", code="raised", link=f"{PARENT} congo=1"))
    found = read(spans, **{"service.name": "pilotlight"})

    assert plain(found.resource.attributes) == {"service.name": "pilotlight"}
    assert (found.schema_url, found.scope_spans[0].schema_url) == (SCHEMA_URL, SCHEMA_URL)
    assert found.scope_spans[0].scope.name == "pilotlight"
    assert len(found.scope_spans[0].spans) == len(spans)
    for told, span in zip(found.scope_spans[0].spans, spans, strict=True):
        assert (told.trace_id.hex(), told.span_id.hex(), told.parent_span_id.hex()) == (
            span.trace_id, span.span_id, span.parent
        )  # fmt: skip
        assert (told.name, told.kind, told.start_time_unix_nano, told.end_time_unix_nano, told.trace_state) == (
            span.name, span.kind, span.begin_ns, span.end_ns, span.trace_state
        )  # fmt: skip
        assert plain(told.attributes) == span.attributes
        assert (told.status.code, told.status.message) == ((2, span.error) if span.error else (0, ""))
    link = parse_traceparent(PARENT)
    assert link is not None
    (told,) = found.scope_spans[0].spans[0].links
    assert (told.trace_id.hex(), told.span_id.hex(), told.trace_state) == (link.trace_id, link.span_id, "congo=1")


@given(name=st.text(), attributes=st.dictionaries(st.text(min_size=1), value, max_size=5))
def test_whatever_an_attribute_is_it_arrives(name: str, attributes: dict[str, AttributeValue]) -> None:
    span = Span(trace_id="a" * 32, span_id="b" * 16, name=name, begin_ns=0, end_ns=2**63, attributes=attributes)
    told = read([span]).scope_spans[0].spans[0]
    assert (told.name, plain(told.attributes), told.end_time_unix_nano) == (name, attributes, 2**63)


def test_half_a_character_does_not_stop_the_others() -> None:
    """A tenant's name of a step may have one."""
    span = Span(trace_id="a" * 32, span_id="b" * 16, name="\ud800", begin_ns=0, end_ns=1, attributes={"x": "\ud800"})
    assert read([span]).scope_spans[0].spans[0].name == "?"


@pytest.mark.parametrize("rejected", [0, 1, 127, 128, 70_000])
def test_what_a_collector_did_not_take_is_read(rejected: int) -> None:
    said = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=rejected))
    assert rejected_spans(said.SerializeToString()) == rejected


@given(st.binary(max_size=40))
def test_an_answer_that_is_none_says_nothing(answer: bytes) -> None:
    """It raises nothing."""
    assert rejected_spans(answer) >= 0
