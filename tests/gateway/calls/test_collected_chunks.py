"""A generator that is called for one answer."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadOutput, FunctionRaised, Unavailable
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, ChunkEvent, StageEvent
from pilotlight_gateway.calls.collected_chunks import ANSWER_BYTES, collect_chunks
from tests.builders.calls import prepared_call
from tests.builders.specs import method
from tests.gateway.body_codecs import small_codec

GENERATOR = prepared_call(method=method(mode=Mode.GENERATOR, output_schema={"type": "integer"}), stream=True)


def chunks(*values: object) -> list[CallEvent]:
    return [ChunkEvent(seq=n, data=msgspec.msgpack.encode(value)) for n, value in enumerate(values, 1)]


async def collect(calls: FakeCalls, budget: ByteBudget) -> CallResult:
    """What a call comes to; whatever that is, nothing stays counted."""
    try:
        return await collect_chunks(calls, GENERATOR, small_codec(), budget)
    finally:
        assert budget.used == 0


async def test_the_answer_is_the_list_of_all_chunks() -> None:
    """With the result's receipt; stages are nobody's business here."""
    calls = FakeCalls(events=[StageEvent(name="running", ms=1.0), *chunks(1, 2, 3)])
    result = await collect(calls, ByteBudget(limit=100))
    assert msgspec.msgpack.decode(result.output) == [1, 2, 3]
    assert result.container == "ctr_1"


async def test_each_chunk_keeps_the_functions_promise() -> None:
    """The first one that does not ends the call."""
    calls = FakeCalls(events=chunks(1, "two", 3))
    with pytest.raises(BadOutput):
        await collect(calls, ByteBudget(limit=100))
    assert calls.cancelled == ["a"]


async def test_an_answer_has_a_largest_size() -> None:
    """Beyond it a client has to take events."""
    large = ChunkEvent(seq=1, data=b"\x01" * (ANSWER_BYTES + 1))
    generator = prepared_call(method=method(mode=Mode.GENERATOR), stream=True)
    budget = ByteBudget(limit=4 * ANSWER_BYTES)
    with pytest.raises(BadOutput, match="event-stream"):
        await collect_chunks(FakeCalls(events=[large]), generator, small_codec(), budget)
    assert budget.used == 0


async def test_chunks_count_while_they_are_held() -> None:
    """Beyond the tenant's share of the budget the call fails."""
    with pytest.raises(Unavailable):
        await collect(FakeCalls(events=chunks(1, 2, 3)), ByteBudget(limit=4))


async def test_a_call_that_fails_has_no_answer() -> None:
    """Whatever it yielded before."""
    with pytest.raises(FunctionRaised):
        await collect(FakeCalls(events=chunks(1), error=FunctionRaised("x")), ByteBudget(limit=100))
