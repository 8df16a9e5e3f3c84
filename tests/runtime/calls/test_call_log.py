"""How lines of an agent's log name a call."""

from __future__ import annotations

import asyncio

import structlog
from structlog.testing import capture_logs

from pilotlight_core.model.tracing.trace_context import own_trace_id
from pilotlight_runtime.calls.call_log import ids_of_call, logged_as
from tests.builders.calls import run

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_call_is_named_by_its_id_its_tenant_and_its_trace() -> None:
    """The one that it came in, or the one that it begins."""
    came = run("call_1", traceparent=f"00-{TRACE}-00f067aa0ba902b7-00")
    assert ids_of_call(came) == {"call": "call_1", "tenant": "acme", "trace_id": TRACE}
    assert ids_of_call(run("call_1"))["trace_id"] == own_trace_id("call_1")


async def test_what_a_task_logs_that_begins_for_a_call_names_it() -> None:
    """Also when it is over where it began."""
    go_on = asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        structlog.get_logger().info("done")

    with logged_as(run("call_1")):
        task = asyncio.create_task(work())
    go_on.set()
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        await task
    assert (logged[0]["call"], logged[0]["tenant"]) == ("call_1", "acme")
    assert not structlog.contextvars.get_contextvars().get("call")
