"""Calls that go to a fallback while their callers wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from pilotlight_core.model.errors import Conflict, PilotlightError, TooMuch, Unavailable
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import (
    BegunCall,
    CallEvent,
    CallResult,
    CallWaiter,
    ChunkEvent,
    ChunkTaker,
    StageEvent,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.fallbacks.fallback_calls import FallbackStream, FallbackWaiter, run_or_fall_back
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, version_record

BIG = prepared_call(version=version_record(function_spec("big"), id="ver_big"))
SMALL = prepared_call(version=version_record(function_spec("small"), id="ver_small", number=3))
FULL = TooMuch("the queue of big is full", code="queue_full")
CHUNK = ChunkEvent(seq=1, data=b"x")
RESULT = CallResult(output=b"42")
FELL_BACK = CallResult(output=b"42", fallback="hello.small@v3")


class Begun:
    """A call that can be ended."""

    def __init__(self) -> None:
        self.ended = 0

    def end(self) -> None:
        self.ended += 1


class Scripted(FakeCalls):
    """Calls whose outcome is written by function; `late`: those that a waiter hears of after they have begun."""

    def __init__(self, late: bool = False, **outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes
        self.late = late
        self.begun: list[Begun] = []
        self.waiting: list[Callable[[], None]] = []
        self.streams: list[Any] = []
        self.takers: list[ChunkTaker | None] = []

    def begin(self, call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        if call.version.function not in self.outcomes:
            raise Conflict("the id is another call's")
        (outcome,) = self.outcomes[call.version.function]

        def tell() -> None:
            if isinstance(outcome, PilotlightError):
                waiter.failed(outcome)
            else:
                waiter.finished(outcome)

        self.begun.append(begun := Begun())
        if self.late:
            self.waiting.append(tell)
        else:
            tell()
        return begun

    async def run(self, call: PreparedCall) -> CallResult:
        (outcome,) = self.outcomes[call.version.function]
        if isinstance(outcome, PilotlightError):
            raise outcome
        assert isinstance(outcome, CallResult)
        return outcome

    async def _stream(self, call: PreparedCall) -> AsyncIterator[list[CallEvent]]:
        for outcome in self.outcomes[call.version.function]:
            if isinstance(outcome, PilotlightError):
                raise outcome
            yield outcome if isinstance(outcome, list) else [outcome]

    def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> Any:
        self.takers.append(taker)
        self.streams.append(stream := self._stream(call))
        return stream


def to_small(call: PreparedCall, error: PilotlightError) -> PreparedCall | None:
    """As the registry has it."""
    return SMALL if call is BIG and error.wire_code in ("queue_full", "no_capacity") else None


class Heard:
    """A waiter that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.finished: Callable[[CallResult], None] = self.told.append
        self.failed: Callable[[PilotlightError], None] = self.told.append


@pytest.mark.parametrize(
    ("big", "small", "told"),
    [
        (RESULT, FULL, RESULT),
        (FULL, RESULT, FELL_BACK),
        (FULL, Unavailable("nor has small"), "nor has small"),
        (Unavailable("x", code="draining"), RESULT, "x"),
    ],
)
@pytest.mark.parametrize("late", [False, True])
async def test_a_call_is_run_once_more_and_elsewhere(big: Any, small: Any, told: Any, late: bool) -> None:
    """Its caller hears of one outcome, however early it is known; a result names the version that it is of."""
    calls = Scripted(late, big=[big], small=[small])
    heard = Heard()
    either = FallbackWaiter(calls, BIG, heard, to_small)
    either.start()
    while calls.waiting:
        calls.waiting.pop(0)()
    either.end()
    assert all(begun.ended for begun in calls.begun)
    (outcome,) = heard.told
    try:
        ran: object = await run_or_fall_back(calls, BIG, to_small)
    except PilotlightError as error:
        ran = error
    for found in (outcome, ran):
        named = found.more.get("fallback_for") if isinstance(found, PilotlightError) else None
        assert named == (BIG.version.ref if told == "nor has small" else None)
        assert (found.detail if isinstance(found, PilotlightError) else found) == told


@pytest.mark.parametrize("small", [RESULT, Unavailable("nor has small"), FULL])
@pytest.mark.parametrize("late", [False, True])
async def test_each_call_is_ended_once(small: Any, late: bool) -> None:
    """Also by a caller that ends it as soon as it is told, from within: both have the same id."""
    calls, told = Scripted(late, big=[FULL], small=[small]), list[object]()

    class Ending:
        def finished(self, result: CallResult) -> None:
            told.append(result)
            either.end()

        def failed(self, error: PilotlightError) -> None:
            told.append(error)
            either.end()

    either = FallbackWaiter(calls, BIG, Ending(), to_small)
    either.start()
    while calls.waiting:
        calls.waiting.pop(0)()
    either.end()
    assert [begun.ended for begun in calls.begun] == [1, 1]
    assert len(told) == 1


async def test_a_second_call_that_cannot_begin_is_told() -> None:
    """Nobody else would hear of it."""
    calls, heard = Scripted(big=[FULL]), Heard()
    FallbackWaiter(calls, BIG, heard, to_small).start()
    (error,) = heard.told
    assert isinstance(error, Conflict)


async def test_a_caller_that_leaves_hears_nothing_more() -> None:
    """Wherever its call is; that one is ended."""
    calls, heard = Scripted(late=True, big=[FULL], small=[RESULT]), Heard()
    either = FallbackWaiter(calls, BIG, heard, to_small)
    either.start()
    calls.waiting.pop(0)()
    first, second = calls.begun
    assert (first.ended, second.ended) == (1, 0)
    either.end()
    assert second.ended == 1
    calls.waiting.pop(0)()
    assert heard.told == []


async def events_of(calls: Scripted) -> list[CallEvent | str]:
    """What a stream yields, and its error."""
    stream = FallbackStream(calls, BIG, to_small, lambda: BIG.arrived_at + 0.5)
    found: list[CallEvent | str] = []
    try:
        async for bunch in stream:
            found += bunch
    except PilotlightError as error:
        found.append(error.detail)
    return found


QUEUED = StageEvent(name="queued", ms=0.1)
MOVED = StageEvent(name="fallback", ms=500.0, detail={"version": "hello.small@v3", "reason": "queue_full"})


@pytest.mark.parametrize(
    ("big", "small", "events"),
    [
        ([QUEUED, CHUNK, RESULT], [], [QUEUED, CHUNK, RESULT]),
        ([QUEUED, FULL], [QUEUED, CHUNK, RESULT], [QUEUED, MOVED, QUEUED, CHUNK, FELL_BACK]),
        ([FULL], [Unavailable("nor has small")], [MOVED, "nor has small"]),
        ([CHUNK, FULL], [RESULT], [CHUNK, FULL.detail]),
        ([[QUEUED, CHUNK, QUEUED], FULL], [RESULT], [QUEUED, CHUNK, QUEUED, FULL.detail]),
        ([Unavailable("x", code="draining")], [RESULT], ["x"]),
    ],
)
async def test_a_stream_goes_elsewhere_before_its_first_chunk(big: Any, small: Any, events: list[Any]) -> None:
    """And says so by a stage; a part of one answer is never followed by another."""
    assert await events_of(Scripted(big=big, small=small)) == events


async def test_a_stream_that_is_closed_closes_the_call_that_runs() -> None:
    """The one at the fallback, once it is there."""
    calls = Scripted(big=[FULL], small=[QUEUED, CHUNK])
    stream = FallbackStream(calls, BIG, to_small, lambda: 0.0)
    assert await anext(stream) == [
        StageEvent(name="fallback", ms=0.0, detail={"version": "hello.small@v3", "reason": "queue_full"})
    ]
    await anext(stream)
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


class Taker:
    """Takes chunks."""

    def take(self, seq: int, data: tuple[bytes, ...]) -> bool:
        return bool(seq and data)


async def test_whoever_takes_chunks_is_asked_by_either_call() -> None:
    """Nothing stands between: the first chunk, behind which no call falls back, comes as an event."""
    calls, taker = Scripted(big=[QUEUED, FULL], small=[RESULT]), Taker()
    stream = FallbackStream(calls, BIG, to_small, lambda: BIG.arrived_at + 0.5, taker)
    assert await anext(stream) == [QUEUED]
    assert await anext(stream) == [MOVED]
    assert calls.takers == [taker, taker]
