"""Sampled calls as protobuf, read by OpenTelemetry's own classes and held against what `span_tree` makes of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pilotlight_core.model.tracing.sampled_call import SampledRecord, SampledSheet
from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE, context_within
from pilotlight_gateway.traces.otlp_encoding import request_of
from pilotlight_gateway.traces.sampled_encoding import MOST_FORMS, MOST_LENGTHS, SpanForm, SpanForms
from tests.builders.kept import AT_NS, CALL_ID, kept_call, sampled_call, sheet_of

ms = st.sampled_from([0.0, 1e-7, 0.001]) | st.floats(0.0, 1e6)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


MATES = (context_within("call_1", "").header, context_within("call_2", SAMPLED_HERE).header, "what", "", "x" * 55)
"""The last ones no honest node tells."""


def read(*told: Any) -> list[Any]:
    """The spans of a request: a sampled call has a sheet of its own."""
    each = [sheet_of(one) if isinstance(one, SampledRecord) else one for one in told]
    body = request_of(SpanForms().messages(each), {"service.name": "pilotlight"})
    return list(ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans)


def told(span: Any) -> dict[str, Any]:
    """Every field of one; attributes may stand in any order."""
    return {field.name: value for field, value in span.ListFields() if field.name != "attributes"} | {
        "attributes": {one.key: one.value.SerializeToString() for one in span.attributes}
    }


@given(
    stages=st.tuples(ms, ms, ms, ms, ms, ms), rest=ms, call_id=text.filter(bool), tenant=text, function=text,
    container=text, threshold=st.sampled_from(["", "0", "fd7"]), batch_size=st.integers(0, 2**40),
    mates=st.lists(st.sampled_from(MATES), max_size=40).map(tuple),
)  # fmt: skip
def test_the_spans_are_those_that_are_made_of_the_whole_record(
    stages: tuple[float, float, float, float, float, float], rest: float, call_id: str, **kind: Any
) -> None:
    """Field by field, whatever a tenant names its things and a node says of its batch, and whichever stages took no
    time.
    """
    call = sampled_call(call_id, stages=stages, total_ms=sum(stages) + rest, **kind)
    assert [told(span) for span in read(call)] == [told(span) for span in read(call.whole("gw1"))]


def test_a_call_is_a_root_and_its_stages_which_sum_to_it() -> None:
    """Those that took no time are none."""
    root, *stages = read(sampled_call())
    assert [span.name for span in stages] == ["gateway", "queue", "transport", "batch_wait", "execute", "respond"]
    assert {span.parent_span_id for span in stages} == {root.span_id}
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (AT_NS, AT_NS + 12 * 10**6)
    took = [span.end_time_unix_nano - span.start_time_unix_nano for span in stages]
    assert abs(sum(took) - 12 * 10**6) < 10**3
    assert [one.value.string_value for one in root.attributes if one.key == "faas.invocation_id"] == [CALL_ID]


def test_calls_of_several_kinds_and_whole_ones_stand_beside_each_other() -> None:
    """In their order."""
    first, other = sampled_call(), sampled_call(function="acme:shop.other", id="call_2", mates=MATES[:2])
    spans = read(sheet_of(first, other), kept_call(), sampled_call(id="call_4"))
    assert [span.name for span in spans if not span.parent_span_id] == [
        "shop.rank", "shop.other", "shop.rank", "shop.rank",
    ]  # fmt: skip


def test_what_is_remembered_of_kinds_is_bounded() -> None:
    """And of the lengths of ids, which a gateway may send as it likes."""
    forms = SpanForms()
    for number in range(MOST_FORMS + 5):
        forms.messages([sheet_of(sampled_call(container=f"c{number}"))])
    assert 0 < len(forms) <= MOST_FORMS
    form = SpanForm(sampled_call().kind)
    for length in range(MOST_LENGTHS * 3):
        form.root(length)
    assert len(form._roots) <= MOST_LENGTHS


def test_a_form_is_made_once_for_a_kind() -> None:
    """Also where it comes in another message, as another object."""
    forms = SpanForms()
    for _ in range(3):
        forms.messages([sheet_of(sampled_call(), sampled_call(id="call_2"))])
    assert len(forms) == 1


def test_a_sheet_that_is_none_is_left_out_whole() -> None:
    """Cut off, of a kind that it does not have, or with times and an id that cannot be: the others go out."""
    good = sheet_of(sampled_call(), sampled_call(id="call_2"))
    records = good.records
    for bad in (
        records[:-1],
        records[: len(records) // 2 + 20],
        b"\x09" + records[1:],
        records[:24] + b"\xff" * 8 + records[32:],
        records[:-1] + b"\xff",
    ):
        assert read(SampledSheet(good.kinds, good.count, bad), good) == read(good)
