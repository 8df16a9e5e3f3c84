"""Plans under way: which commands wait for others, and their progress. Pure: time is an argument (seconds).

A `PlanExecution` has the steps that wait for each other or share a group. A step is sent when the nodes' reports show
that the steps before it are done: a container is ready, another is gone, a GPU is cut. If a step fails, the steps that
wait for it and the later ones of its group are dropped, and the next pass decides again. A new leader starts without
executions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pilotlight_core.model.devices import DeviceReport, MigMode
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Bind, ContainerState, Drain, Stop
from pilotlight_placement.hardware.geometry import Layout
from pilotlight_placement.plan.commands import PlannedCommand

AgentCommand = Bind | Drain | Stop | Cut | SwitchMig
PlanStep = PlannedCommand[AgentCommand]
"""A command of a plan as its agent gets it."""
RESEND_S = 5.0
"""A step without effect after so long is sent again; agents recognise a repeated command."""
TRIES = 6
END_S = 60.0
"""A draining container must be gone so long after the limit of its last call; else the step has failed."""
LONGEST_S = 900.0
"""The longest wait for another container to become ready, or to end."""
REPORT_S = 1.5
"""A node's report sooner than this after a command may be older than the command."""
BIND_S = 7.0
"""A bind that no report shows after so long (three tries) has failed."""
AVOID_S = 30.0
"""How long a GPU on which a command failed accepts nothing new, so that another one is tried first."""
MAX_WORKS = 1_024
MAX_STEPS = 4_096
"""Steps of all executions; a plan that does not fit is made again later."""


class NodeObservations(Protocol):
    """The last reports of the nodes."""

    def state(self, container: str) -> ContainerState | None:
        """A container's state; None if no node has it."""
        ...

    def device(self, node: str, gpu: str) -> DeviceReport | None: ...

    def last_report_at(self, node: str) -> float | None:
        """When a node reported last; None if it is gone or drains."""
        ...


class StepStatus(StrEnum):
    WAITING = "waiting"  # for others
    SENT = "sent"
    DONE = "done"
    DROPPED = "dropped"  # it failed, or a step that it waits for did


@dataclass(kw_only=True)
class StepProgress:
    step: PlanStep
    status: StepStatus = StepStatus.WAITING
    begun_at: float = 0.0
    """When it was first sent."""
    sent_at: float = 0.0
    tries: int = 0
    seen: bool = False
    """Whether its effect was reported: its new container exists, or its drained container accepts no calls."""


@dataclass(kw_only=True)
class PlanExecution:
    """Steps that belong together, by number."""

    steps: dict[int, StepProgress]
    nodes: frozenset[str]
    """Where they are."""
    notes: list[str] = field(default_factory=list)
    """Failures, for people."""

    @classmethod
    def of(cls, steps: Iterable[PlanStep]) -> PlanExecution:
        progress = {step.number: StepProgress(step=step) for step in steps}
        return cls(steps=progress, nodes=frozenset([each.step.node for each in progress.values()]))

    @property
    def is_over(self) -> bool:
        return all(each.status in (StepStatus.DONE, StepStatus.DROPPED) for each in self.steps.values())

    def waiting(self) -> Iterator[PlanStep]:
        """The steps that were not sent yet and may be."""
        return (each.step for each in self.steps.values() if each.status is StepStatus.WAITING)

    def open(self) -> Iterator[PlanStep]:
        live = (StepStatus.WAITING, StepStatus.SENT)
        return (each.step for each in self.steps.values() if each.status in live)

    def advance(self, seen: NodeObservations, at: float) -> list[PlanStep]:
        """Update each step from the reports; the steps to send now."""
        for each in self.steps.values():
            if each.status is StepStatus.SENT:
                if is_done(each, seen):
                    each.status = StepStatus.DONE
                elif why := failure(each, seen, at):
                    self.drop(each.step.number, why)
        due = [each for each in self.steps.values() if self._is_due(each, at)]
        for each in due:
            if seen.last_report_at(each.step.node) is None:
                self.drop(each.step.number, f"{each.step.node} is gone, or drains")
        return [self._send(each, at) for each in due if each.status is not StepStatus.DROPPED]

    def drop(self, number: int, why: str) -> None:
        """Drop a step, the later ones of its group, and all that wait for one of these."""
        self.notes.append(f"{describe(self.steps[number].step)} failed: {why}")
        self.steps[number].status = StepStatus.DROPPED
        lost, group = {number}, self.steps[number].step.group
        for later, each in sorted(self.steps.items()):
            waits = lost.intersection(each.step.after) or (each.step.group == group and later > number)
            if waits and each.status is StepStatus.WAITING:
                each.status = StepStatus.DROPPED
                lost.add(later)

    def _is_due(self, each: StepProgress, at: float) -> bool:
        if each.status is StepStatus.SENT:
            # `World.lost_binds` sends binds again.
            again = not isinstance(each.step.command, Bind) and not each.seen
            return again and at - each.sent_at >= RESEND_S and each.tries < TRIES
        if each.status is not StepStatus.WAITING:
            return False
        return all(self.steps[number].status is StepStatus.DONE for number in each.step.after if number in self.steps)

    @staticmethod
    def _send(each: StepProgress, at: float) -> PlanStep:
        each.begun_at = each.begun_at if each.tries else at
        each.status, each.sent_at, each.tries = StepStatus.SENT, at, each.tries + 1
        return each.step


def is_done(each: StepProgress, seen: NodeObservations) -> bool:
    """Whether the reports show the step's effect."""
    match each.step.command:
        case Bind(container=container):
            state = seen.state(container)
            each.seen = each.seen or state is not None
            return state is ContainerState.READY
        case Drain(container=container) | Stop(container=container):
            state = seen.state(container)
            each.seen = each.seen or state in (ContainerState.DRAINING, ContainerState.GONE)
            return state is None
        case Cut(device=gpu, destroy=destroy, create=create):
            device = seen.device(each.step.node, gpu)
            there = {instance.place for instance in device.instances} if device else set()
            return bool(device) and there.issuperset(create) and not there.intersection(destroy)
        case SwitchMig(device=gpu, on=on):
            device = seen.device(each.step.node, gpu)
            return device is not None and device.mig is (MigMode.ON if on else MigMode.OFF) and not device.changing


def failure(each: StepProgress, seen: NodeObservations, at: float) -> str:
    """Why the step has failed by the reports, or ""."""
    command, waited = each.step.command, at - each.sent_at
    last_report_at = seen.last_report_at(each.step.node)
    if last_report_at is None:
        return f"{each.step.node} is gone, or drains"
    if isinstance(command, Bind):
        state = seen.state(command.container)
        if each.seen and state in (None, ContainerState.DRAINING, ContainerState.GONE):
            return f"{command.container} did not become ready"
        if each.seen and at - each.begun_at > LONGEST_S:
            return f"{command.container} is not ready after {LONGEST_S:.0f} s"
        return "no report shows it" if not each.seen and waited > BIND_S else ""
    if isinstance(command, Drain) and each.seen:
        # Its calls may use their full time, so a move for its sake is not in vain.
        longest = min(LONGEST_S, command.within_ms / 1000.0 + END_S)
        return f"it has not come to an end within {longest:.0f} s" if at - each.begun_at > longest else ""
    if isinstance(command, Cut | SwitchMig):
        device = seen.device(each.step.node, command.device)
        if device is None:
            return f"{command.device} is gone"
        if device.refused and not device.changing and last_report_at - each.sent_at > REPORT_S:
            return device.refused
    return "it shows no effect" if each.tries >= TRIES and waited > RESEND_S else ""


def describe(step: PlanStep) -> str:
    match step.command:
        case Bind(container=container, slice=slice_):
            return f"starting {container} on {step.node}/{slice_}"
        case Drain(container=container) | Stop(container=container):
            return f"stopping {container}"
        case Cut(device=gpu, destroy=destroy, create=create):
            gone = f", {' '.join(str(place) for place in destroy)} away" if destroy else ""
            return f"cutting {' '.join(str(place) for place in create) or 'nothing'} on {step.node}/{gpu}{gone}"
        case SwitchMig(device=gpu, on=on):
            return f"switching MIG {'on' if on else 'off'} on {step.node}/{gpu}"


class PlanExecutions:
    """All executions under way; bounded."""

    def __init__(self) -> None:
        self._works: list[PlanExecution] = []
        self._avoided: dict[tuple[str, str], float] = {}

    def __len__(self) -> int:
        return len(self._works)

    def add(self, steps: Iterable[PlanStep]) -> bool:
        """Add an execution; False if there is no room for it."""
        work = PlanExecution.of(steps)
        if len(self._works) >= MAX_WORKS or len(work.steps) + sum(len(w.steps) for w in self._works) > MAX_STEPS:
            return False
        self._works.append(work)
        return True

    def clear(self) -> None:
        self._works.clear()

    def concern(self, node: str) -> bool:
        """Whether a step of any is on this node."""
        return any(node in work.nodes for work in self._works)

    def advance(self, seen: NodeObservations, at: float, node: str = "") -> tuple[list[PlanStep], list[str]]:
        """The steps to send now, and the failures in words; of executions with a step on `node` alone, if it is named.

        Nothing is new of the others but the time.
        """
        some = [work for work in self._works if node in work.nodes] if node else self._works
        due = [step for work in some for step in work.advance(seen, at)]
        notes = []
        for work in self._works:
            notes += work.notes
            self._avoid(work, at)
            work.notes.clear()
        self._works = [work for work in self._works if not work.is_over]
        self._avoided = {place: until for place, until in self._avoided.items() if until > at}
        return due, notes

    def refused(self, command: AgentCommand, reason: str) -> None:
        """Drop a refused step; not if the GPU is busy (it is sent again) or the container is gone already."""
        if reason == "changing" or (reason == "gone" and isinstance(command, Drain | Stop)):
            return
        for work in self._works:
            for number, each in work.steps.items():
                if each.step.command is command and each.status is StepStatus.SENT:
                    work.drop(number, reason)

    def starts(self) -> Iterator[tuple[PlanStep, Bind]]:
        """The starts that are not sent yet."""
        for work in self._works:
            for step in work.waiting():
                if isinstance(step.command, Bind):
                    yield step, step.command

    def closed(self) -> set[tuple[str, str]]:
        """GPUs that accept no other starts: their mode is to change, or a command for them has failed."""
        changing = {(step.node, step.command.device) for step in self._open() if isinstance(step.command, SwitchMig)}
        return changing | self._avoided.keys()

    def recut(self) -> dict[tuple[str, str], Layout]:
        """The instances of each GPU that are to go or to be made, often behind calls that last: the rest stays open."""
        found: dict[tuple[str, str], Layout] = {}
        for step in self._open():
            if isinstance(step.command, Cut):
                key = step.node, step.command.device
                found[key] = (*found.get(key, ()), *step.command.destroy, *step.command.create)
        return found

    def _open(self) -> Iterator[PlanStep]:
        return (step for work in self._works for step in work.open())

    def containers(self) -> set[str]:
        found = set()
        for work in self._works:
            for each in work.steps.values():
                if isinstance(each.step.command, Bind | Drain | Stop):
                    found.add(each.step.command.container)
        return found

    def close_devices(self, places: Iterable[tuple[str, str]], at: float) -> None:
        """Have these devices, each named with its node, accept nothing new for a while."""
        for place in places:
            self._avoided.setdefault(place, at + AVOID_S)

    def _avoid(self, work: PlanExecution, at: float) -> None:
        if not work.notes:
            return
        failed: list[tuple[str, str]] = []
        for each in work.steps.values():
            command = each.step.command
            if each.status is StepStatus.DROPPED and each.tries and isinstance(command, Cut | SwitchMig):
                failed.append((each.step.node, command.device))
        self.close_devices(failed, at)


def independent_steps(steps: Sequence[PlanStep]) -> list[list[PlanStep]]:
    """Sets of steps without dependencies or shared groups between them, each in the order of numbers."""
    root = {step.number: step.number for step in steps}
    groups: dict[int, int] = {}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for step in steps:
        for other in (*step.after, groups.setdefault(step.group, step.number)):
            if other in root:
                root[find(step.number)] = find(other)
    parts: dict[int, list[PlanStep]] = {}
    for step in sorted(steps, key=lambda step: step.number):
        parts.setdefault(find(step.number), []).append(step)
    return list(parts.values())
