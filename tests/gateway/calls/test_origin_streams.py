"""A resumable stream whose containers die at any event: its caller reads what it would have read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadOutput, ContainerDied, PilotlightError, Preempted
from pilotlight_core.model.messages.call_messages import (
    Chunk,
    Ended,
    Outcome,
    Started,
    StreamCheckpoint,
    Window,
)
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.streams.resuming import MARK_BYTES, Resumable
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import (
    Effect,
    FailCall,
    HoldJournal,
    ReportStage,
    SendControl,
    SendRun,
)
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_runtime.guest.stream_out import StreamOut
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record
from tests.example_counts import examples
from tests.gateway.calls.stream_world import World, finish, origin_of, spec_of, tell, tell_at_length, text

DEATHS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 400), st.sampled_from(["guest", "agent"])), min_size=1, max_size=2
)


@given(
    words=st.integers(0, 400),
    every=st.integers(0, 9),
    deaths=DEATHS,
    groups=st.booleans(),
    taken=st.lists(st.booleans(), min_size=1, max_size=5).map(tuple),
    large=st.booleans(),
)
@examples(300)
def test_nothing_is_lost_and_nothing_comes_twice(
    words: int, every: int, deaths: list[tuple[int, int, str]], *, groups: bool, taken: tuple[bool, ...], large: bool
) -> None:
    """Whenever its containers die, and however much of what they said is lost with them; whether its caller reads what
    comes at once or later, and whether the journal has events themselves or marks of them.
    """
    function = tell_at_length if large else tell
    world = World(words, every, groups=groups, taken=taken, function=function)
    world.start()
    for steps, heard, who in deaths:
        for step in range(steps):
            world.step()
            if step % 7 == 0:
                world.deliver(heard % 11)
        world.deliver(heard)
        if world.end is not None:
            break
        world.kill_guest() if who == "guest" else world.kill_agent()
        if world.origin.state is OriginState.QUEUED:
            world.start()
    finish(world)

    assert isinstance(world.end, CallResult), world.end
    assert world.read == text(words, function)
    assert not world.io.kills
    assert set(world.paid) | world.begun >= set(range(1, words + 1))
    assert len(set(world.paid)) == len(world.paid) or any(who == "agent" for _, _, who in deaths)
    if all(who == "guest" for _, _, who in deaths):  # else what nobody heard was produced, and is again
        assert world.paid == list(range(1, words + 1)), "what is repeated is the operator's"


def test_the_caller_is_told_where_it_goes_on() -> None:
    """As a stage, with the number of the event."""
    world = World(20, 5)
    world.start()
    for _ in range(13):
        world.step()
    world.deliver(100)
    world.kill_guest()

    assert world.stages[-1] == "moving"
    assert world.origin.state is OriginState.QUEUED
    world.start()
    assert world.out.seq == 10


def test_after_two_more_containers_it_ends() -> None:
    """A function that ends its container would do so for ever."""
    world = World(20, 5)
    world.start()
    for _ in range(3):
        for _ in range(7):
            world.step()
        world.kill_guest()
        if world.end is None:
            world.start()

    assert isinstance(world.end, ContainerDied)
    assert world.end.more["receipt"] == "/v1/calls/a/receipt"
    assert world.read == text(20)[:17]
    assert "It had gone on elsewhere 2 times before." in str(world.end)
    assert world.starts == 3


def test_one_that_finds_no_other_place_says_where_its_part_is_billed() -> None:
    """It waited until its deadline, or its home dropped it."""
    for is_late in (True, False):
        world = World(20, 5)
        world.start()
        for _ in range(7):
            world.step()
        world.kill_guest()
        origin = world.origin
        assert origin.state is OriginState.QUEUED
        dropped = Dropped(call_id="a", gateway="gw1", code="no_capacity", detail="full")
        world._perform(origin.tick(origin.call.deadline_at) if is_late else origin.dropped(dropped))

        assert isinstance(world.end, PilotlightError)
        assert (world.end.more["call"], world.end.more["receipt"]) == ("a", "/v1/calls/a/receipt")


def test_whose_function_it_is_hears_why_it_moved() -> None:
    """Another tenant that may call it hears that it did."""
    reasons = []
    for tenant in ("acme", "globex"):
        version = version_record(spec_of(), app="app")
        origin = Origin(
            prepared_call(version=version, method=version.spec.methods[0], stream=True, tenant=tenant), "gw1", 0.0
        )
        origin.begin(0.0)
        origin.granted(grant(1), 1.0)
        died = Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.DIED, reason="exit code 3")
        reasons += [
            one.detail["reason"]
            for one in origin.frame("n1", died, 2.0)
            if isinstance(one, ReportStage) and one.name == "moving"
        ]

    assert reasons == ["exit code 3", ""]


@pytest.mark.parametrize(("by_tenant", "free_ms"), [(False, 3_000.0), (True, 0.0)])
def test_a_function_that_ends_its_container_pays_for_what_it_repeats(by_tenant: bool, free_ms: float) -> None:
    """Else it would work for nothing for as long, as often as it may move."""
    origin = origin_of(spec_of())
    origin.granted(grant(1), 1.0)
    origin.frame("n1", Started(call_id="a", grant_number=1), 2.0)
    origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=1, data=b"x"), 5.0)
    died = Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.DIED, by_tenant=by_tenant)
    origin.frame("n1", died, 6.0)
    (sent,) = [one for one in origin.granted(grant(2), 7.0) if isinstance(one, SendRun)]

    assert sent.run.resume is not None
    assert sent.run.resume.repeat_ms == free_ms


@pytest.mark.parametrize("has_part", [True, False])
def test_a_preempted_stream_that_cannot_go_on_says_so_and_where_its_part_is_billed(has_part: bool) -> None:
    """Whoever has a part of it; of nothing there is no receipt to name."""
    origin = origin_of(spec_of(migrations=0))
    origin.granted(grant(1), 1.0)
    origin.frame("n1", Started(call_id="a", grant_number=1), 2.0)
    if has_part:
        origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=1, data=b"x"), 5.0)
    died = Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.DIED, preempted=True, reason="so it is")
    (failed,) = [one for one in origin.frame("n1", died, 6.0) if isinstance(one, FailCall)]

    assert isinstance(failed.error, Preempted)
    assert failed.error.more.get("receipt") == ("/v1/calls/a/receipt" if has_part else None)


def test_its_agent_is_told_whether_it_can_go_on_elsewhere() -> None:
    """When its journal is closed, and when a state opens it again; while there is no memory for it, once in between."""
    origin = origin_of(spec_of())
    origin.granted(grant(1), 1.0)
    origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=1, data=b"x"), 2.0)

    def told(effects: list[Effect]) -> list[bool | None]:
        return [
            one.message.movable
            for one in effects
            if isinstance(one, SendControl) and isinstance(one.message, Window)
        ]  # fmt: skip

    saved = StreamCheckpoint(call_id="a", grant_number=1, seq=1, state=b"s")
    assert told(origin.close_journal("no memory", 3.0)) == [False]
    assert told(origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=2, data=b"y"), 4.0)) == []
    assert told(origin.frame("n1", saved, 4.5)) == []
    again = origin.frame("n1", msgspec.structs.replace(saved, seq=2), 5.0)
    assert told(again) == [True]
    kinds = [type(one) for one in again if isinstance(one, SendControl | HoldJournal)]
    assert kinds == [SendControl, HoldJournal], "what follows for want of memory is the last word"
    assert told(origin.close_journal("no memory", 5.0)) == [False]


def test_a_stream_that_tells_something_else_is_ended() -> None:
    """Its caller would read two halves of two texts."""
    told = iter(range(100))

    def drift(_: StreamOut, words: int, __: int) -> Iterator[bytes]:
        for _number in range(words):
            yield b"%d" % next(told)

    world = World(9, 0, function=drift)
    world.start()
    for _ in range(3):
        world.step()
    world.kill_guest()
    world.start()
    world.step()
    world.deliver(9)

    assert isinstance(world.end, BadOutput)
    assert "whose event 1 is not the one that was sent" in str(world.end)


def test_a_stream_that_repeats_less_is_ended() -> None:
    """It ends before it has said what its caller has."""
    lengths = iter([5, 2])

    def shrink(_: StreamOut, __: int, ___: int) -> Iterator[bytes]:
        yield from (b"%d" % number for number in range(next(lengths)))

    world = World(9, 0, function=shrink)
    world.start()
    for _ in range(4):
        world.step()
    world.kill_guest()
    world.start()
    for _ in range(3):
        world.step()
    world.deliver(9)

    assert isinstance(world.end, BadOutput)
    assert "whose event 3 is not the one that was sent" in str(world.end)


def test_without_memory_for_its_journal_it_cannot_go_on() -> None:
    """That is said when it happens, and again when it dies; the next checkpoint that fits changes it."""
    world = World(30, 20)
    world.start()
    for _ in range(3):
        world.step()
    world.deliver(9)
    assert world.journal_bytes >= 3 * MARK_BYTES
    world._perform(world.origin.close_journal("no memory is left", 2.0))
    assert world.stages[-1] == "not_resumable"
    assert world.journal_bytes == 0
    for _ in range(19):
        world.step()
    world.deliver(99)
    world.kill_guest()
    assert world.origin.state is OriginState.QUEUED

    closed = World(30, 0)
    closed.start()
    closed.step()
    closed.deliver(9)
    closed._perform(closed.origin.close_journal("no memory is left", 2.0))
    closed.kill_guest()
    assert isinstance(closed.end, ContainerDied)
    assert "It could not go on elsewhere: no memory is left." in str(closed.end)


def test_a_stream_that_saves_in_vain_is_not_told_each_time() -> None:
    """It could save many times a second, and what its caller is told waits for its caller."""
    world = World(30, 1)
    world.start()
    for _ in range(20):
        world.step()
        world.deliver(9)
        world._perform(world.origin.close_journal("no memory is left", world.at))
    assert world.stages.count("not_resumable") == 1
    world.at += 2.0
    world.step()
    world.deliver(9)
    world._perform(world.origin.close_journal("no memory is left", world.at))
    assert world.stages.count("not_resumable") == 2


def test_one_that_may_not_move_dies_with_its_container() -> None:
    """`migrations=0`: its client can come back, its container not."""
    world = World(5, 1, migrations=0)
    world.start()
    world.step()
    world.kill_guest()

    assert isinstance(world.end, ContainerDied)


def test_repeating_for_too_long_is_the_tenants_time() -> None:
    """What took a moment the first time may not be dragged out for nothing."""
    world = World(9, 0)
    world.start()
    for _ in range(4):
        world.step()
    world.kill_guest()
    world.start()
    world.step()
    assert not world.io.repeated
    world.runner.check_limits(world.at + 10.0)

    assert world.io.repeated == ["a"]


@pytest.mark.parametrize("mode", list(Mode))
def test_what_returns_is_no_stream(mode: Mode) -> None:
    """A method that returns is not resumable beside one that yields."""
    spec = function_spec("fn", method("a", mode=mode), method("b", mode=Mode.GENERATOR), resumable=Resumable())
    origin = Origin(prepared_call(version=version_record(spec), method=spec.methods[0]), "gw1", 0.0)
    origin.begin(0.0)
    (sent,) = origin.granted(grant(1), 1.0)

    assert isinstance(sent, SendRun)
    assert (sent.run.resume is not None) == (mode is Mode.GENERATOR)
    origin.frame("n1", Started(call_id="a", grant_number=1), 2.0)
    died = origin.frame("n1", Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.DIED), 3.0)
    assert any(isinstance(effect, Enqueue) for effect in died) == (mode is Mode.GENERATOR)
