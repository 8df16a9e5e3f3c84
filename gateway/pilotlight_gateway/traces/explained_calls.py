"""Kept calls as the API shows them, to the tenant that made them."""

from __future__ import annotations

from pilotlight_core.model.api.seeing.trace_api import (
    CallExplanation,
    ExplainedAttempt,
    KeptCallRow,
    WaterfallRow,
)
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_gateway.tenancy.shown_names import shown_name
from pilotlight_gateway.traces.call_segments import segments_of
from pilotlight_gateway.traces.call_sentences import longest_part, sentences_of

DIGITS = 3
"""Of milliseconds."""


def row_of(call: KeptCall, *, operator: bool) -> KeptCallRow:
    """A call in a list, as its tenant sees it, or an operator who made it."""
    longest, ms = longest_part(call)
    return KeptCallRow(
        id=call.id,
        trace_id=call.trace_id,
        function=function_text(call),
        version=call.ref,
        kept=call.kept.value,
        code=call.code,
        arrived_at=call.arrived_ns / 1e9,
        total_ms=round(call.total_ms, DIGITS),
        longest=longest,
        longest_ms=round(ms, DIGITS),
        cold_start=call.cold_start is not None,
        attempts=len(call.attempts),
        gateway=shown_name(call.gateway, operator=operator),
    )


def explanation_of(call: KeptCall, *, operator: bool) -> CallExplanation:
    """All that is said of a call to the tenant that made it."""
    is_owner = not call.owner or call.owner == call.tenant
    return CallExplanation(
        id=call.id,
        trace_id=call.trace_id,
        function=function_text(call),
        version=call.ref,
        method=call.method,
        kept=call.kept.value,
        code=call.code,
        arrived_at=call.arrived_ns / 1e9,
        total_ms=round(call.total_ms, DIGITS),
        cold_start=call.cold_start,
        batch_size=call.batch_size,
        sentences=tuple(sentences_of(call, is_owner=is_owner)),
        rows=tuple(_rows(call)),
        attempts=tuple(
            ExplainedAttempt(
                container=one.container if is_owner else "",
                outcome=one.outcome,
                reason=one.reason if is_owner else "",
                started=one.started,
                ms=round(sum((one.queue, one.start, one.transport, one.batch_wait, one.execute)), DIGITS),
            )
            for one in call.attempts
        ),
        gateway=shown_name(call.gateway, operator=operator),
    )


def function_text(call: KeptCall) -> str:
    """The function as its caller names it."""
    owner, _, name = call.function.partition(":")
    return name if owner == call.tenant else call.function


def _rows(call: KeptCall) -> list[WaterfallRow]:
    rows: list[WaterfallRow] = []
    several = len(call.attempts) > 1
    for segment in segments_of(call):
        rows.append(
            WaterfallRow(
                name=segment.name,
                begin_ms=round(segment.begin_ms, DIGITS),
                ms=round(segment.ms, DIGITS),
                attempt=segment.attempt if several else 0,
            )
        )
        rows += [
            WaterfallRow(
                name=step.name, begin_ms=round(step.begin_ms, DIGITS), ms=round(step.ms, DIGITS), step_of=segment.name
            )
            for step in segment.steps
        ]
    return rows
