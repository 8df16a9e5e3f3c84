"""Which call runs here."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from pilotlight import current_call, current_calls
from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.messages.running_code import IN_BATCH, IN_HOOK, RUNNING_CALL, RUNNING_ITEMS, RUNNING_TRACE
from pilotlight_core.model.tracing.trace_context import context_within, own_trace_id

CAME = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Items:
    """A batch of two."""

    def traced_calls(self) -> list[tuple[str, str]]:
        return [("call_1", CAME), ("call_2", "")]


def within(call_id: str, came: str = "") -> None:
    RUNNING_CALL.set(call_id)
    RUNNING_TRACE.set(came)
    RUNNING_ITEMS.set(Items() if call_id == IN_BATCH else None)


def test_a_call_knows_its_id_and_its_trace() -> None:
    """That of its caller, or the one that it begins."""

    def look() -> None:
        within("call_1", CAME)
        assert (current_call().id, current_call().traceparent) == ("call_1", context_within("call_1", CAME).header)
        assert current_call().tracestate == ""
        within("call_1", f"{CAME} congo=1,rojo=2")
        assert (current_call().traceparent, current_call().tracestate) == (
            context_within("call_1", CAME).header, "congo=1,rojo=2"
        )  # fmt: skip
        within("call_1")
        assert current_call().traceparent.split("-")[1] == own_trace_id("call_1")
        assert current_calls() == [current_call()]

    copy_context().run(look)


def test_outside_a_call_there_is_none() -> None:
    """On a laptop, in a module, in a hook: what reads it goes on."""

    def look() -> None:
        for place in ("", IN_HOOK):
            within(place)
            assert (current_call().id, current_call().traceparent, current_calls()) == ("", "", [])

    copy_context().run(look)


def test_a_batch_has_several() -> None:
    """In the order of its items."""

    def look() -> None:
        within(IN_BATCH)
        with pytest.raises(Misuse, match=r"current_calls\(\)"):
            current_call()
        assert [call.id for call in current_calls()] == ["call_1", "call_2"]
        assert current_calls()[0].traceparent.split("-")[1] == CAME.split("-")[1]

    copy_context().run(look)
