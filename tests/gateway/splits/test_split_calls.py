"""Calls of a rollout that another version runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import (
    Conflict,
    ContainerDied,
    FunctionRaised,
    LoadFailed,
    PilotlightError,
    TooMuch,
    Unavailable,
)  # fmt: skip
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.rollouts.split import Side
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, ChunkEvent, ChunkTaker
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.splits.split_calls import TRIES, SplitCalls, may_move
from pilotlight_gateway.splits.splits import Splits
from tests.builders.calls import grant, prepared_call
from tests.gateway.world import World, function

NEW = "ver_" + "2" * 32
STALE = Conflict("split anew", code="stale_split")
FULL = TooMuch("full", code="queue_full")
CANARY, CONTROL = Side("rol_1", Arm.CANARY, 0.5, ""), Side("rol_1", Arm.CONTROL, 0.0, "")
RAISED = FunctionRaised("no")
CHUNK = ChunkEvent(seq=1, data=b"x")


class Scripted(FakeCalls):
    """Each version has what it comes to in turn: an error, or the rest is a result."""

    outcomes: dict[str, list[PilotlightError]]
    chunks_first = False

    def _next(self, call: PreparedCall) -> CallResult:
        self.seen.append(call)
        waiting = self.outcomes.get(call.version.id, [])
        if waiting:
            raise waiting.pop(0)
        return CallResult(output=call.version.id.encode())

    async def run(self, call: PreparedCall) -> CallResult:
        return self._next(call)

    async def _events(self, call: PreparedCall) -> AsyncIterator[list[CallEvent]]:
        if self.chunks_first:
            yield [CHUNK]
        result = self._next(call)
        yield [CHUNK]
        yield [result]

    def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> Any:
        return self._events(call)


class Bench:
    def __init__(self, world: World, **options: Any) -> None:
        (self.old,) = world.deploy(function("hello", **options))
        self.registry = world.registry
        self.registry.versions[NEW] = self.new = replace(self.old, id=NEW, number=2)
        rollout = Rollout(
            id="rol_1", number=1, control={"hello": self.old.id}, canary={"hello": NEW}, salt=b"s" * 32,
            state=RolloutState.RAMP, share=WHOLE, since=0.0, started_at=0.0, by="k",
        )  # fmt: skip
        self.calls = Scripted()
        self.calls.outcomes = {}
        self.key = ("acme", self.old.app)
        self.registry.rollout_records[self.key] = RolloutRecord(
            tenant="acme", app=self.old.app, revision=5, rollout=rollout
        )
        self.split = SplitCalls(self.calls, self.registry, Splits(self.registry))

    def roll_back(self) -> None:
        record = self.registry.rollout_records[self.key]
        assert record.rollout is not None
        rolled = replace(record.rollout, share=0, state=RolloutState.ROLLING_BACK)
        self.registry.rollout_records[self.key] = replace(record, revision=6, rollout=rolled)

    def call(self, side: Side | None = CANARY, **more: Any) -> PreparedCall:
        version = self.new if side is CANARY else self.old
        fields = {"side": side, "split": 5, "version": version, "method": version.spec.methods[0]} | more
        return prepared_call(**fields)


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world)


async def test_what_runs_is_left_alone(bench: Bench) -> None:
    result = await bench.split.run(bench.call())
    assert (result.output, result.moved, result.fallback) == (NEW.encode(), "", "")


async def test_a_call_that_a_rollback_has_caught_goes_to_the_old_version(bench: Bench) -> None:
    """Under its own id and at its own age, and counted on no side: it was chosen by an older record."""
    bench.calls.outcomes[NEW] = [STALE]
    bench.roll_back()
    result = await bench.split.run(call := bench.call())
    assert (result.moved, result.fallback) == ("stale_split", bench.old.ref)
    first, second = bench.calls.seen
    assert (second.call_id, second.arrived_at, second.split) == (first.call_id, call.arrived_at, 6)
    assert second.version.id == bench.old.id


async def test_a_late_call_is_chosen_for_anew_by_the_record_of_the_bus(bench: Bench) -> None:
    """One that knew of no rollout may well belong to the new version."""
    bench.calls.outcomes[bench.old.id] = [STALE]
    result = await bench.split.run(bench.call(None, split=0))
    assert (result.output, result.moved) == (NEW.encode(), "stale_split")
    assert bench.calls.seen[-1].side is not None


@pytest.mark.parametrize(
    "error", [FULL, Unavailable("none", code="no_capacity"), Unavailable("open", code="breaker_open")]
)
async def test_what_the_new_version_has_not_begun_the_old_one_runs(bench: Bench, error: PilotlightError) -> None:
    bench.calls.outcomes[NEW] = [error]
    result = await bench.split.run(bench.call())
    assert (result.output, result.moved) == (bench.old.id.encode(), error.wire_code)
    assert bench.calls.seen[-1].side is None


@pytest.mark.parametrize(
    ("options", "error", "moves"),
    [
        ({}, RAISED, False),
        ({"retries": 1}, RAISED, True),
        ({"idempotent": True}, RAISED, True),
        ({"retries": 1}, ContainerDied("died"), False),
        ({"idempotent": True}, ContainerDied("died"), True),
    ],
)
async def test_what_may_run_twice_is_run_by_the_old_version_when_the_new_one_fails(
    world: World, options: dict[str, Any], error: PilotlightError, moves: bool
) -> None:
    bench = Bench(world, **options)
    bench.calls.outcomes[NEW] = [error]
    if moves:
        assert (await bench.split.run(bench.call())).moved == error.wire_code
    else:
        with pytest.raises(type(error)):
            await bench.split.run(bench.call())


@pytest.mark.parametrize(
    ("error", "told"), [(RAISED, ("function_raised", "c9")), (FULL, None), (LoadFailed("no"), ("load_failed", "c9"))]
)
async def test_what_the_new_version_has_failed_is_told_before_the_old_one_runs_it(
    world: World, error: PilotlightError, told: tuple[str, str] | None
) -> None:
    """Its container with it; what says nothing of the version is not."""
    bench, seen = Bench(world, retries=2), list[tuple[str, str, int]]()

    def note(_call: PreparedCall, code: str, course: CallResult | None) -> None:
        seen.append((code, course.container if course is not None else "", len(bench.calls.seen)))

    bench.split.on_failed_start = note
    error.course = CallResult(output=b"", container="c9")
    bench.calls.outcomes[NEW] = [error]
    await bench.split.run(bench.call())
    assert seen == ([(*told, 1)] if told else [])


async def test_a_fault_of_who_is_told_of_it_costs_no_call_its_answer(world: World) -> None:
    bench = Bench(world, retries=2)

    def fail(_call: PreparedCall, _code: str, _course: CallResult | None) -> None:
        raise RuntimeError("a bug")

    bench.split.on_failed_start = fail
    bench.calls.outcomes[NEW] = [RAISED]
    assert (await bench.split.run(bench.call())).moved == "function_raised"


@pytest.mark.parametrize(("error", "left"), [(FunctionRaised("no"), 1), (LoadFailed("no"), 2)])
async def test_what_the_new_version_has_raised_is_one_of_the_runs_that_are_allowed(
    world: World, error: PilotlightError, left: int
) -> None:
    bench = Bench(world, retries=2)
    bench.calls.outcomes[NEW] = [error]
    await bench.split.run(bench.call())
    assert [call.version.spec.retries for call in bench.calls.seen] == [2, left]


@pytest.mark.parametrize("streams", [True, False])
async def test_what_the_new_version_has_raised_stays_with_the_old_one_however_traffic_is_split_by_then(
    world: World, *, streams: bool
) -> None:
    """It has no run more for that."""
    bench = Bench(world, retries=2)
    bench.calls.outcomes = {NEW: [RAISED], bench.old.id: [STALE]}
    if streams:
        async for _ in bench.split.stream(bench.call()):
            pass
    else:
        await bench.split.run(bench.call())
    old = bench.old.id
    assert [(call.version.id, call.version.spec.retries) for call in bench.calls.seen] == [(NEW, 2), (old, 1), (old, 1)]


async def test_what_the_old_version_does_not_take_the_new_one_tries_again(world: World) -> None:
    """On no side, so that it may try as often as it says."""
    bench = Bench(world, retries=2)
    other = replace(bench.new.spec.methods[0], input_schema={"type": "object", "required": ["new"]})
    bench.calls.outcomes[NEW] = [FunctionRaised("no")]
    result = await bench.split.run(bench.call(method=other))
    assert result.output == NEW.encode()
    first, second = bench.calls.seen
    assert (first.is_tried_once, second.is_tried_once, second.version.spec.retries) == (True, False, 1)


async def test_failures_of_the_old_version_are_its_callers(world: World) -> None:
    bench = Bench(world, idempotent=True)
    bench.calls.outcomes = {NEW: [RAISED], bench.old.id: [FunctionRaised("old"), RAISED]}
    with pytest.raises(FunctionRaised, match="old"):
        await bench.split.run(bench.call())
    with pytest.raises(FunctionRaised):
        await bench.split.run(bench.call(CONTROL))
    assert len(bench.calls.seen) == 3


async def test_a_version_that_was_named_never_moves(bench: Bench) -> None:
    bench.calls.outcomes[NEW] = [FULL]
    with pytest.raises(TooMuch):
        await bench.split.run(bench.call(None, split=-1, version=bench.new))


async def test_what_has_run_somewhere_counts_as_begun(bench: Bench) -> None:
    assert not may_move(bench.call(), TooMuch("full", code="queue_full", usage={"ns": 1}))


async def test_records_that_change_for_ever_end_in_the_refusal(bench: Bench) -> None:
    bench.calls.outcomes = {NEW: [STALE] * (TRIES + 2)}
    with pytest.raises(Conflict) as refused:
        await bench.split.run(bench.call())
    assert refused.value.wire_code == "stale_split"
    assert len(bench.calls.seen) == TRIES + 1


async def collected(events: Any) -> list[CallEvent]:
    return [event async for bunch in events for event in bunch]


async def test_a_stream_moves_before_its_first_chunk(bench: Bench) -> None:
    bench.calls.outcomes[NEW] = [FULL]
    chunk, result = await collected(bench.split.stream(bench.call()))
    assert chunk == CHUNK
    assert isinstance(result, CallResult)
    assert (result.output, result.moved) == (bench.old.id.encode(), "queue_full")


async def test_a_stream_that_has_begun_stays(world: World) -> None:
    bench = Bench(world, idempotent=True)
    bench.calls.chunks_first = True
    bench.calls.outcomes[NEW] = [RAISED]
    with pytest.raises(FunctionRaised):
        await collected(bench.split.stream(bench.call()))
    assert len(bench.calls.seen) == 1


async def test_arguments_that_the_old_version_does_not_take_are_refused_in_words(bench: Bench) -> None:
    other = replace(bench.new.spec.methods[0], input_schema={"type": "object", "required": ["new"]})
    bench.calls.outcomes[NEW] = [FULL]
    call = bench.call(method=other)
    with pytest.raises(Unavailable, match="takes other arguments"):
        await bench.split.run(call)


async def test_a_stream_whose_version_was_rolled_back_says_so(bench: Bench) -> None:
    """What came so far is what it made: no other version goes on with it."""
    bench.calls.chunks_first = True
    bench.calls.outcomes[NEW] = [STALE]
    with pytest.raises(Conflict, match="was rolled back before this stream ended") as ended:
        await collected(bench.split.stream(bench.call()))

    assert ended.value.wire_code == "version_withdrawn"
    assert len(bench.calls.seen) == 1


async def test_a_stream_that_knew_of_no_rollout_is_chosen_for_anew(bench: Bench) -> None:
    """Its gateway had not heard of the record when it came."""
    bench.calls.outcomes[bench.old.id] = [STALE]
    chunk, result = await collected(bench.split.stream(bench.call(None, split=0)))

    assert chunk == CHUNK
    assert isinstance(result, CallResult)
    assert [call.split for call in bench.calls.seen] == [0, 5]


async def test_what_runs_again_is_granted_by_higher_numbers(bench: Bench) -> None:
    """An agent that has run it for the new version takes no lower one."""
    failed = FULL.__class__("full", code="queue_full")
    failed.course = CallResult(output=b"", grant=grant(3))
    bench.calls.outcomes[NEW] = [failed]
    await bench.split.run(bench.call())

    assert [call.last_number for call in bench.calls.seen] == [0, 3]


async def test_an_app_that_went_back_by_hand_is_read_from_the_bus(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that slept through it has the old record of the app in memory."""
    back = bench.registry.apps[bench.key]
    stale_app = replace(back, functions={"hello": NEW})
    monkeypatch.setattr(bench.registry, "app_nowait", lambda _tenant, _app: stale_app)
    bench.roll_back()
    bench.calls.outcomes[NEW] = [STALE]
    result = await bench.split.run(bench.call(None, version=bench.new, method=bench.new.spec.methods[0]))

    assert result.output == bench.old.id.encode()


async def test_a_call_of_a_call_stays_on_its_side_when_it_is_chosen_anew(bench: Bench) -> None:
    """By the drawing alone it would be on the new version: all calls of its own are."""
    bench.calls.outcomes[bench.old.id] = [STALE]
    result = await bench.split.run(bench.call(CONTROL, parent="call_1"))
    assert (result.output, result.moved) == (bench.old.id.encode(), "stale_split")
    assert bench.calls.seen[-1].side == CONTROL
