"""Plans under way: what waits for what, and what becomes of a step that fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from pilotlight_autoscaler.plans.plan_execution import (
    AVOID_S,
    END_S,
    LONGEST_S,
    MAX_STEPS,
    RESEND_S,
    TRIES,
    PlanExecutions,
    PlanStep,
    describe,
    independent_steps,
)
from pilotlight_core.model.devices import DeviceReport, InstanceReport, MigMode, MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Bind, ContainerState, Drain
from tests.builders.nodes import bind, gpu_device

PLACE = MigPlacement(start=4, profile="3g")


@dataclass
class Scripted:
    """What the nodes reported, by fields."""

    states: dict[str, ContainerState] = field(default_factory=dict)
    devices: dict[str, DeviceReport] = field(default_factory=dict)
    nodes: dict[str, float] = field(default_factory=lambda: {"n": 0.0})

    def state(self, container: str) -> ContainerState | None:
        return self.states.get(container)

    def device(self, node: str, gpu: str) -> DeviceReport | None:
        return self.devices.get(gpu)

    def last_report_at(self, node: str) -> float | None:
        return self.nodes.get(node)


def gpu(*places: MigPlacement, mig: bool = True, **more: Any) -> DeviceReport:
    made = tuple(InstanceReport(slice=f"GPU-1:{p}", place=p, name="3g", uuid="MIG-1", memory=1, ppm=1) for p in places)
    return gpu_device(instances=made, mig=MigMode.ON if mig else MigMode.OFF, **more)


def drain(name: str) -> Drain:
    return Drain(epoch=1, container=name, within_ms=1.0)


def step(number: int, command: Bind | Drain | Cut | SwitchMig, *after: int, group: int = 1) -> PlanStep:
    return PlanStep(number=number, group=group, after=after, node="n", command=command)


CUT = Cut(epoch=1, device="GPU-1", create=(PLACE,))
SWITCH = SwitchMig(epoch=1, device="GPU-1", on=True)


def sent(executions: PlanExecutions, seen: Scripted, at: float) -> list[int]:
    return [step.number for step in executions.advance(seen, at)[0]]


def test_each_step_is_sent_when_the_reports_show_the_one_before() -> None:
    """Switch, cut, start, and then the stop of the original."""
    executions, seen = PlanExecutions(), Scripted(devices={"GPU-1": gpu(mig=False)})
    executions.add([step(0, SWITCH), step(1, CUT, 0), step(2, bind("copy"), 1), step(3, drain("old"), 2)])

    assert sent(executions, seen, 0.0) == [0]
    assert executions.closed() == {("n", "GPU-1")}
    assert sent(executions, seen, 0.5) == []
    seen.devices["GPU-1"] = gpu()
    assert sent(executions, seen, 1.0) == [1]
    assert executions.closed() == set()
    assert [command.container for _, command in executions.starts()] == ["copy"]
    seen.devices["GPU-1"] = gpu(PLACE)
    assert sent(executions, seen, 2.0) == [2]
    seen.states |= {"old": ContainerState.READY, "copy": ContainerState.LOADING}
    assert sent(executions, seen, 3.0) == []
    seen.states["copy"] = ContainerState.READY
    assert sent(executions, seen, 4.0) == [3]
    assert executions.containers() == {"copy", "old"}
    del seen.states["old"]
    assert sent(executions, seen, 5.0) == []
    assert len(executions) == 0


def test_nothing_else_starts_where_instances_are_to_go_and_to_be_made() -> None:
    """A container there would stop the plan, once everything has been moved for it. The rest of the GPU is open."""
    executions, seen = PlanExecutions(), Scripted(devices={"GPU-1": gpu(PLACE)}, states={"old": ContainerState.READY})
    seven = MigPlacement(start=0, profile="7g")
    recut = Cut(epoch=1, device="GPU-1", destroy=(PLACE,), create=(seven,))
    executions.add([step(0, drain("old")), step(1, recut, 0), step(2, bind("large"), 1)])

    assert sent(executions, seen, 0.0) == [0]
    assert executions.recut() == {("n", "GPU-1"): (PLACE, seven)}
    del seen.states["old"]
    assert sent(executions, seen, 1.0) == [1]
    assert executions.recut() == {("n", "GPU-1"): (PLACE, seven)}
    assert executions.closed() == set()
    seen.devices["GPU-1"] = gpu(seven)
    assert sent(executions, seen, 2.0) == [2]
    assert executions.recut() == {}


def test_a_copy_that_does_not_become_ready_leaves_the_original() -> None:
    """The later steps of its group are dropped."""
    executions, seen = PlanExecutions(), Scripted(states={"old": ContainerState.READY})
    executions.add([step(0, bind("copy", slice="GPU-1:3g@4")), step(1, drain("old"), 0), step(2, bind("large"), 1)])
    assert sent(executions, seen, 0.0) == [0]
    seen.states["copy"] = ContainerState.LOADING
    assert sent(executions, seen, 1.0) == []
    del seen.states["copy"]

    due, notes = executions.advance(seen, 2.0)

    assert (due, len(executions)) == ([], 0)
    assert notes == ["starting copy on n/GPU-1:3g@4 failed: copy did not become ready"]


def test_a_gpu_that_refuses_is_shunned_for_a_while() -> None:
    """Said at once by the agent, or later by its report; an old refusal is not taken for the answer."""
    executions, seen = PlanExecutions(), Scripted(devices={"GPU-1": gpu(refused="earlier")}, nodes={"n": 9.9})
    executions.add([step(0, CUT), step(1, bind("c"), 0)])
    assert sent(executions, seen, 10.0) == [0]
    assert executions.advance(seen, 10.5) == ([], [])
    seen.nodes["n"] = 12.0

    notes = executions.advance(seen, 12.0)[1]

    assert notes == ["cutting 3g@4 on n/GPU-1 failed: earlier"]
    assert executions.closed() == {("n", "GPU-1")}
    executions.advance(seen, 12.0 + AVOID_S)
    assert executions.closed() == set()


@pytest.mark.parametrize(("reason", "drops"), [("changing", False), ("illegal", True)])
def test_a_refused_command_is_dropped_unless_the_agent_is_only_busy(reason: str, *, drops: bool) -> None:
    """A busy one is asked again."""
    executions, seen = PlanExecutions(), Scripted(devices={"GPU-1": gpu()})
    executions.add([step(0, CUT), step(1, bind("c"), 0)])
    executions.advance(seen, 0.0)

    executions.refused(CUT, reason)

    assert bool(executions.advance(seen, 1.0)[1]) is drops
    assert sent(executions, seen, RESEND_S) == ([] if drops else [0])


def test_what_shows_no_effect_is_given_up_in_the_end() -> None:
    """After so many tries."""
    executions, seen = PlanExecutions(), Scripted(states={"old": ContainerState.READY})
    executions.add([step(0, drain("old")), step(1, bind("c"), 0)])

    tries = sum(len(sent(executions, seen, at * RESEND_S)) for at in range(TRIES + 3))

    assert tries == TRIES
    assert len(executions) == 0


def test_nothing_is_sent_to_a_node_that_drains() -> None:
    """The rest of the plan goes with it."""
    executions, seen = PlanExecutions(), Scripted(nodes={})
    executions.add([step(0, drain("old")), step(1, bind("c"), 0)])

    due, notes = executions.advance(seen, 0.0)

    assert due == []
    assert notes == ["stopping old failed: n is gone, or drains"]


def test_there_is_room_for_so_many_steps() -> None:
    """A plan that does not fit is made again later."""
    executions = PlanExecutions()
    assert executions.add([step(number, bind(f"c{number}")) for number in range(MAX_STEPS)])
    assert not executions.add([step(0, bind("more"))])


def test_steps_stand_together_if_one_waits_for_another_or_shares_its_group() -> None:
    """And only then."""
    steps = [
        step(0, bind("a"), group=1), step(1, bind("b"), group=2), step(2, CUT, group=3),
        step(3, bind("c"), 2, group=4), step(4, drain("d"), group=2), step(5, drain("e"), 1, group=5),
    ]  # fmt: skip

    assert [[each.number for each in part] for part in independent_steps(steps)] == [[0], [1, 4, 5], [2, 3]]


def test_steps_are_described_in_words() -> None:
    """For logs."""
    cut = Cut(epoch=1, device="GPU-1", destroy=(PLACE,), create=(MigPlacement(start=6, profile="1g"),))
    assert describe(step(0, cut)) == "cutting 1g@6 on n/GPU-1, 3g@4 away"
    assert describe(step(0, SWITCH)) == "switching MIG on on n/GPU-1"


def test_an_original_that_ends_its_last_calls_is_waited_for() -> None:
    """It has the time of its calls and a margin, gets one drain, and no other container moves meanwhile."""
    executions, seen = PlanExecutions(), Scripted(states={"old": ContainerState.READY})
    told = Drain(epoch=1, container="old", within_ms=600_000.0)
    executions.add([step(0, told), step(1, bind("large"), 0)])
    assert sent(executions, seen, 0.0) == [0]
    seen.states["old"] = ContainerState.DRAINING

    for at in range(1, 600, 5):
        seen.nodes["n"] = float(at)
        assert executions.advance(seen, float(at)) == ([], [])
    assert len(executions) == 1
    del seen.states["old"]
    assert sent(executions, seen, 600.0) == [1]


def test_nobody_waits_for_ever_for_what_another_tenant_does() -> None:
    """A copy that loads for a day, and an original with a call of a day: the step fails, and its version is decided
    again.
    """
    for first, state in ((bind("copy"), ContainerState.LOADING), (drain("old"), ContainerState.DRAINING)):
        executions, seen = PlanExecutions(), Scripted(states={first.container: state})
        slow = msgspec.structs.replace(first, within_ms=86_400_000.0) if isinstance(first, Drain) else first
        executions.add([step(0, slow), step(1, bind("large"), 0)])
        for at in (0.0, 1.0, LONGEST_S):
            seen.nodes["n"] = at
            assert executions.advance(seen, at)[1] == []
        seen.nodes["n"] = LONGEST_S + 1.0

        _, (note,) = executions.advance(seen, LONGEST_S + 1.0)

        assert "900 s" in note
        assert len(executions) == 0


def test_an_original_that_never_ends_is_given_up() -> None:
    """Its node does not do what it should."""
    executions, seen = PlanExecutions(), Scripted(states={"old": ContainerState.DRAINING})
    executions.add([step(0, drain("old")), step(1, bind("large"), 0)])
    assert sent(executions, seen, 0.0) == [0]

    executions.advance(seen, 1.0)
    _, notes = executions.advance(seen, 1.0 + 2 * END_S)

    assert notes == ["stopping old failed: it has not come to an end within 60 s"]
    assert len(executions) == 0
