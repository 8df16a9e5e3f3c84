"""How lines of an agent's log name the call that they are about."""

from __future__ import annotations

from contextlib import AbstractContextManager

import structlog

from pilotlight_core.model.messages.call_messages import Run
from pilotlight_core.model.tracing.trace_context import trace_id_of


def ids_of_call(run: Run) -> dict[str, str]:
    """The ids of a call: its own, its tenant, and its trace."""
    return {"call": run.call_id, "tenant": run.tenant, "trace_id": trace_id_of(run.call_id, run.traceparent)}


def logged_as(run: Run) -> AbstractContextManager[None]:
    """What is logged in the block, and by tasks that begin there, names the call."""
    return structlog.contextvars.bound_contextvars(**ids_of_call(run))
