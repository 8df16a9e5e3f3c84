"""A kept call as spans: a root, and below it what took its time, end to end.

    call search.embed (SERVER)
    ├── gateway
    ├── queue                  of the first attempt
    ├── start ── fetch, import, enter …
    ├── transport
    ├── batch_wait
    ├── execute                where the spans of the function's own code join, linked to those of its batch
    ├── queue, transport, execute …    of a further attempt
    └── respond

Names are those of OpenTelemetry's semantic conventions where it has one (`SCHEMA_URL`), and ours, `pilotlight.…`, where
it has none. No attribute has a payload, or what a function has said.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.tracing.kept_call import WELL, CallTrigger, KeptCall, KeptWhy
from pilotlight_core.model.tracing.trace_context import (
    EXECUTE,
    OTHERS,
    ROOT,
    TraceContext,
    parse_traceparent,
    sampled_state,
    span_id_of,
)
from pilotlight_gateway.traces.call_segments import CallSegment, SegmentStep, segments_of

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
INTERNAL, SERVER, CONSUMER = 1, 2, 5
"""Kinds of spans, as OTLP numbers them."""
TRIGGERS = {CallTrigger.HTTP: "http", CallTrigger.JOB: "pubsub", CallTrigger.NESTED: "other"}
"""`faas.trigger`."""
TOKENS = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
}
GENERATES = "generate_content"
"""`gen_ai.operation.name`: the platform does not know which kind of generation a function does."""

RUNS = "execute"
"""The stage below whose span those of the function's code are."""
OF_STEPS, MOST_STEPS = 256, 32
"""Places of the spans of steps, behind those of all stages that a call may have; and of the steps of one start."""

AttributeValue = str | bool | int | float


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One span. Instants are unix nanoseconds."""

    trace_id: str
    span_id: str
    parent: str = ""
    name: str
    kind: int = INTERNAL
    begin_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue] = {}
    error: str = ""
    """The code of a failure; "": it ended well."""
    links: tuple[TraceContext, ...] = ()
    trace_state: str = ""


def spans_of(call: KeptCall) -> list[Span]:
    """The spans of a call, its root first."""
    root = _root(call)
    spans, segments = [root], segments_of(call)
    executes = [segment for segment in segments if segment.name == RUNS]
    for index, segment in enumerate(segments):
        # The function's own spans are below the last one, whose id it knows.
        is_last = segment.name == RUNS and segment is executes[-1]
        span = _stage(call, root, segment, span_id_of(call.id, EXECUTE if is_last else OTHERS + index))
        first = OF_STEPS + index * MOST_STEPS
        spans += [span, *(_step(call, span, step, first + number) for number, step in enumerate(segment.steps))]
    return spans


def _root(call: KeptCall) -> Span:
    link = parse_traceparent(call.link) if call.link else None
    name = call.function.partition(":")[2] or call.route or "call"
    return Span(
        trace_id=call.trace_id,
        span_id=span_id_of(call.id, ROOT),
        parent=call.parent_span,
        name=name,
        kind=CONSUMER if call.trigger is CallTrigger.JOB else SERVER,
        begin_ns=call.arrived_ns,
        end_ns=_at(call, call.total_ms),
        attributes=_root_attributes(call),
        error=call.code,
        links=(link,) if link is not None else (),
        trace_state=_state_of(call),
    )


def _state_of(call: KeptCall) -> str:
    """The caller's, with how many calls this one stands for where it was sampled."""
    if call.kept is KeptWhy.SAMPLED and call.threshold:
        return sampled_state(call.state, call.threshold)
    return call.state


def _root_attributes(call: KeptCall) -> dict[str, AttributeValue]:
    app_function = call.function.partition(":")[2]
    found: dict[str, AttributeValue] = {
        "faas.trigger": TRIGGERS[call.trigger],
        "faas.invocation_id": call.id,
        "faas.coldstart": call.cold_start is not None,
        "faas.name": app_function,
        "faas.version": call.ref,
        "faas.instance": call.attempts[-1].container if call.attempts else "",
        "error.type": call.code,
        "http.route": call.route,
        "pilotlight.tenant": call.tenant,
        "pilotlight.owner": call.owner,
        "pilotlight.method": call.method,
        "pilotlight.priority": call.priority,
        "pilotlight.kept": call.kept.value,
        "pilotlight.parent_call": call.parent,
        "pilotlight.attempts": len(call.attempts),
        "pilotlight.batch_size": call.batch_size,
        "pilotlight.limits": ",".join(call.limits),
    }
    found |= {f"pilotlight.units.{name}": count for name, count in call.units.items() if name not in TOKENS}
    return _filled(found | _tokens(call))


def _tokens(call: KeptCall) -> dict[str, AttributeValue]:
    """What charts of language models are drawn by."""
    counted: dict[str, AttributeValue] = {TOKENS[name]: n for name, n in call.units.items() if name in TOKENS}
    if not counted:
        return {}
    model = call.function.partition(":")[2]
    more = {"gen_ai.operation.name": GENERATES, "gen_ai.provider.name": "pilotlight", "gen_ai.request.model": model}
    return counted | more


def _stage(call: KeptCall, root: Span, segment: CallSegment, span_id: str) -> Span:
    tried = segment.tried
    found: dict[str, AttributeValue] = {"pilotlight.attempt": segment.attempt}
    error = ""
    if tried is not None:
        found |= {"faas.instance": tried.container, "pilotlight.node": tried.node}
        ends_attempt = segment.name == (RUNS if tried.execute > 0.0 else "transport")
        if ends_attempt and tried.outcome not in ("", WELL):
            error = tried.outcome
    if segment.name == RUNS:
        found |= {"pilotlight.batch_size": call.batch_size} | _tokens(call)
    return Span(
        trace_id=root.trace_id,
        span_id=span_id,
        parent=root.span_id,
        name=segment.name,
        begin_ns=_at(call, segment.begin_ms),
        end_ns=_at(call, segment.begin_ms + segment.ms),
        attributes=_filled(found),
        error=error,
        links=_mates_of(segment) if segment.name == RUNS else (),
        trace_state=root.trace_state,
    )


def _mates_of(segment: CallSegment) -> tuple[TraceContext, ...]:
    """The executions of the other calls of its batch: one span cannot be below all of their calls."""
    mates = segment.tried.mates if segment.tried is not None else ()
    return tuple([found for each in mates if (found := parse_traceparent(each)) is not None])


def _step(call: KeptCall, start: Span, step: SegmentStep, place: int) -> Span:
    return Span(
        trace_id=start.trace_id,
        span_id=span_id_of(call.id, place),
        parent=start.span_id,
        name=step.name,
        begin_ns=_at(call, step.begin_ms),
        end_ns=_at(call, step.begin_ms + step.ms),
        trace_state=start.trace_state,
    )


def _filled(attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Those that say something."""
    return {name: value for name, value in attributes.items() if value not in ("", 0) or isinstance(value, bool)}


def _at(call: KeptCall, ms: float) -> int:
    return call.arrived_ns + round(ms * 1e6)
