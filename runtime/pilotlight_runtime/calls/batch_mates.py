"""Which calls ran in one batch, told where somebody may ask: each trace then names those of the others.

Most calls are fast, end well and belong to no trace that is wanted: of those nothing is told, and nothing is made.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.tracing.kept_call import MOST_MATES
from pilotlight_core.model.tracing.trace_context import context_within, parse_traceparent
from pilotlight_runtime.calls.slot_table import AcceptedCall

SLOW_MS = 1_000.0
"""Of a function that names no level."""


def told_mates(
    call: AcceptedCall, batch: Iterable[AcceptedCall], outcome: Outcome, took_ms: float, level_ms: float | None
) -> tuple[str, ...]:
    """The other calls of a call's batch, if they are told. `took_ms`: at this node; `level_ms`: of its function."""
    came = call.run.traceparent
    asked = bool(came) and (found := parse_traceparent(came)) is not None and found.sampled
    if not asked and outcome is Outcome.OK and took_ms < (SLOW_MS if level_ms is None else level_ms):
        return ()
    others = [each for each in batch if each is not call]
    return tuple([context_within(each.call_id, each.run.traceparent).header for each in others[:MOST_MATES]])
