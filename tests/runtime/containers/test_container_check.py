"""The repeated check of a ready container: when it runs, and what happens if it fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome, Refusal, Refused, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.rehearsals.rehearsal import CheckExample, Rehearsal, WarmupExample
from pilotlight_runtime.containers.container_check import ContainerCheck, check_of, early_part, is_due
from pilotlight_runtime.guest import frames as guest
from tests.builders.specs import function_spec, method
from tests.runtime.harness import Harness


@dataclass
class Room:
    is_idle: bool = True
    free: int = 1

    def take_input(self) -> bool:
        taken = self.free > 0
        self.free -= taken
        return taken

    def free_input(self, _at: float) -> None:
        self.free += 1


@dataclass
class Checked:
    """A check every 10 s that may take 2 s, made at 0."""

    room: Room = field(default_factory=Room)
    sent: list[guest.GuestFrame] = field(default_factory=list)
    failures: list[tuple[str, RemoteError | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.check = ContainerCheck(
            Rehearsal(check_every=10.0, check_timeout=2.0),
            self.room,
            send=self.sent.append,
            failed=lambda reason, error: self.failures.append((reason, error)),
            at=0.0,
        )

    def answer(self, at: float, **more: Any) -> bool:
        sent = self.sent[-1]
        assert isinstance(sent, guest.Invoke)
        return self.check.on_result(guest.Result(call_id=sent.call_id, **more), at)


@pytest.mark.parametrize(
    ("since_s", "is_idle", "due"), [(9.9, True, False), (10.0, True, True), (10.0, False, False), (20.0, False, True)]
)
def test_a_check_waits_for_an_idle_moment_but_not_for_ever(since_s: float, is_idle: bool, due: bool) -> None:
    """Twice its time at most."""
    assert is_due(since_s, 10.0, is_idle=is_idle) is due


def test_a_check_takes_the_place_of_one_call_until_it_is_answered() -> None:
    """Then the next one comes a period later."""
    checked = Checked()
    checked.check.tick(9.0)
    assert not checked.sent
    checked.check.tick(10.0)
    checked.check.tick(11.0)

    assert [frame.method for frame in checked.sent if isinstance(frame, guest.Invoke)] == [guest.CHECK_METHOD]
    assert checked.room.free == 0
    assert checked.check.left_s(11.0) == 1.0
    assert checked.answer(11.5)
    assert (checked.room.free, checked.check.done, checked.check.left_s(11.5)) == (1, 1, 0.0)
    checked.check.tick(21.0)
    assert len(checked.sent) == 1
    checked.check.tick(21.5)
    assert len(checked.sent) == 2
    assert not checked.failures


def test_what_was_parked_is_not_checked_before_its_first_call() -> None:
    """It has some seconds for that, and what it was away does not count."""
    for parked_at, checked_at in ((1.0, 109.0), (9.5, 105.0)):
        checked = Checked()
        checked.check.pause(parked_at)
        checked.check.resume(100.0)
        checked.check.tick(checked_at - 0.1)
        assert not checked.sent
        checked.check.tick(checked_at)
        assert len(checked.sent) == 1


def test_what_is_parked_again_and_again_is_checked_nevertheless() -> None:
    """It serves for six seconds of each minute: after two of these its time is there."""
    checked, found = Checked(), list[int]()
    for minute in range(6):
        checked.check.resume(60.0 * minute)
        for second in range(6):
            checked.check.tick(60.0 * minute + second)
            if checked.check.is_under_way:
                found.append(minute)
                assert checked.answer(60.0 * minute + second)
        checked.check.pause(60.0 * minute + 6.0)
    assert len(found) > 1


def test_without_room_it_waits_for_the_end_of_a_call() -> None:
    """And begins then, before the next one."""
    checked = Checked(Room(is_idle=False, free=0))
    checked.check.tick(25.0)
    assert not checked.sent
    checked.room.free = 1
    checked.check.begin_if_due(25.1)
    assert len(checked.sent) == 1


def test_a_check_that_fails_is_told_once_and_is_the_last() -> None:
    """With what it raised."""
    checked = Checked()
    checked.check.tick(10.0)
    error = RemoteError("AssertionError", "it drifts")

    assert checked.answer(10.5, outcome=Outcome.RAISED, error=error)
    checked.check.tick(100.0)
    assert checked.failures == [("its check failed", error)]
    assert len(checked.sent) == 1


def test_a_check_that_takes_too_long_is_told_and_keeps_its_place() -> None:
    """The guest is not done with it."""
    checked = Checked()
    checked.check.tick(10.0)
    checked.check.tick(12.1)

    assert checked.failures == [("its check had not ended after 2 s", None)]
    assert checked.room.free == 0
    assert not checked.answer(13.0)


def test_answers_to_calls_are_not_taken_for_checks() -> None:
    """Also not one without a name while no check is under way."""
    checked = Checked()
    assert not checked.check.on_result(guest.Result(call_id=""), 1.0)
    checked.check.tick(10.0)
    assert not checked.check.on_result(guest.Result(call_id="call_a"), 10.1)


def test_only_functions_that_say_so_are_checked_again() -> None:
    """Every period is their own."""
    room = Room()
    for spec in (function_spec("f"), function_spec("f", rehearsal=Rehearsal(checks=("a",)))):
        assert check_of(spec, room, send=print, failed=print, container="c1", at=0.0) is None


def test_containers_do_not_check_themselves_together() -> None:
    """The first check of each comes by another part of its period early, half of it at most."""
    parts = [early_part(f"ctr_embed_1a_{number}") for number in range(100)]
    assert 0.0 <= min(parts) < 0.1 < 0.4 < max(parts) < 0.5
    sent: list[guest.GuestFrame] = []
    spec = function_spec("f", rehearsal=Rehearsal(checks=("a",), check_every=10.0))
    check = check_of(spec, Room(), send=sent.append, failed=lambda *_: None, container="c1", at=100.0)
    assert check is not None
    due = 110.0 - 10.0 * early_part("c1")
    check.tick(due - 0.1)
    assert not sent
    check.tick(due)
    assert len(sent) == 1
    assert check.is_under_way


SERVICE = """
class Service:
    calls = 0
    def load(self):
        print("entered")
    def run(self, word: str) -> str:
        self.calls += 1
        print("run", word)
        return word.upper() + str(self.calls)
    def healthy(self):
        print("checked after", self.calls)
"""


def service(**more: Any) -> dict[str, Any]:
    return {
        "methods": (method("run", "run"),),
        "is_class": True,
        "qualname": "Service",
        "enter": ("load",),
        "rehearsal": Rehearsal(**more),
    }


async def test_warm_up_examples_and_the_check_run_before_a_container_is_ready(world: Harness) -> None:
    """Each is a step of its start, and the container warms up meanwhile."""
    version = await world.deploy(
        SERVICE,
        **service(
            warmup=tuple(WarmupExample(inputs=(values.encode({"word": word}),)) for word in ("a", "b")),
            checks=("healthy",),
            example=CheckExample(input=values.encode({"word": "c"}), output=values.encode("C3")),
        ),
    )
    container = await world.bind(version)

    assert await world.run(container, word="x").output() == "X4"
    states = [credit.state for credit in world.credits[container]]
    assert states.index(ContainerState.WARMING) < states.index(ContainerState.READY)
    timeline = world.credits[container][-1].timeline
    assert [step for step in timeline if step in guest.STEPS] == ["import", "enter", "warmup", "check"]
    lines = [line.text for line in await world.logs(lambda lines: any(line.text == "run x" for line in lines))]
    assert lines == ["entered", "run a", "run b", "checked after 2", "run c", "run x"]


@pytest.mark.parametrize(
    ("rehearsal", "step", "message"),
    [
        ({"warmup": (WarmupExample(inputs=(values.encode({"word": 1}),)),)}, "warmup", "word"),
        ({"example": CheckExample(input=values.encode({"word": "c"}), output=values.encode("D1"))}, "check", "'D1'"),
    ],
)
async def test_a_warm_up_or_a_check_that_fails_is_the_starts_failure(
    world: Harness, rehearsal: dict[str, Any], step: str, message: str
) -> None:
    """Its error says what was wrong."""
    gone = await world.bind(await world.deploy(SERVICE, **service(**rehearsal)), state=ContainerState.GONE)

    told = world.credits[gone][-1]
    assert told.reason == f"{step} failed"
    assert told.error is not None
    assert message in told.error.message


async def test_a_check_that_hangs_ends_the_start_in_its_own_time(world: Harness) -> None:
    """Not in that of the start, which is ten minutes."""
    source = SERVICE.replace('print("checked after", self.calls)', "__import__('time').sleep(1_000)")
    version = await world.deploy(source, **service(checks=("healthy",), check_timeout=0.2))
    gone = await world.bind(version, state=ContainerState.GONE)

    assert world.credits[gone][-1].reason == "its check had not ended after 0.2 s"


async def test_a_container_whose_check_fails_later_is_taken_out_of_service(world: Harness) -> None:
    """It says why, to its log too, and the calls that it had are answered."""
    source = SERVICE.replace('print("checked after", self.calls)', "assert not self.calls, 'it drifts'")
    version = await world.deploy(source, **service(checks=("healthy",), check_every=0.1))
    container = await world.bind(version)
    assert await world.run(container, word="x").output() == "X1"

    draining = await world.credit(container, ContainerState.DRAINING)
    assert draining.reason == "its check failed: AssertionError: it drifts"
    await world.credit(container, ContainerState.GONE)
    await world.report(lambda report: [(one.id, one.was_ready, one.unfit) for one in report.ended or ()] == [
        (container, True, True)
    ])  # fmt: skip
    lines = await world.logs(lambda lines: any("Traceback" in line.text for line in lines))
    texts = [line.text for line in lines]
    assert "the container is taken out of service: its check failed: AssertionError: it drifts" in texts


async def test_a_check_that_hangs_ends_the_container_and_the_call_behind_it_goes_elsewhere(world: Harness) -> None:
    """It has not started, so it costs nobody anything."""
    source = SERVICE.replace('print("checked after", self.calls)', "self.calls and __import__('time').sleep(1_000)")
    version = await world.deploy(source, **service(checks=("healthy",), check_every=0.1, check_timeout=0.3))
    container = await world.bind(version)
    last: object = None
    while not isinstance(last, Refused):  # the first calls may come before the check has begun
        last = await world.run(container, word="x").last

    assert last.reason is Refusal.DRAINING
    gone = await world.credit(container, ContainerState.GONE)
    assert gone.reason == "its check had not ended after 0.3 s"
