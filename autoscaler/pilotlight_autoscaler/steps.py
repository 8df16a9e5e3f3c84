"""From a plan's commands to commands for agents: container ids of this leader, versions, names of slices. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pilotlight_autoscaler.works import AgentCommand, PlanStep
from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages import device_commands
from pilotlight_core.model.messages.agent_messages import Bind, Drain
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.fleet.reports import name_of
from pilotlight_placement.hardware.geometry import Layout
from pilotlight_placement.plan import commands as planned


@dataclass(frozen=True, kw_only=True)
class CommandContext:
    """What a leader gives to what it commands."""

    epoch: int
    new_id: Callable[[VersionRecord], str]
    drain: Callable[[str, VersionRecord, str], Drain]
    """A container's drain: its id, its version, and why."""


@dataclass(kw_only=True)
class Steps:
    """The steps of one plan, made from its commands in their order."""

    names: CommandContext
    steps: list[PlanStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    """The plan's name for a container -> its id."""

    def start(self, command: planned.PlannedStart, record: VersionRecord) -> None:
        """A container of a version."""
        held = command.held
        container = self.ids[held.container] = self.names.new_id(record)
        slice_ = name_of(held.slice, container)
        bind = Bind(
            epoch=self.names.epoch,
            container=container,
            version=record.id,
            tenant=record.tenant,
            manifest_sha256=record.manifest_sha256,
            function=held.function,
            slice=slice_,
            neighbours=record.spec.placing.neighbours,
        )
        why = f", in place of {command.replaces}" if command.replaces else ""
        self._add(command, held.slice.node, bind, f"{record.ref}: {container} on {held.slice.node}/{slice_}{why}")

    def stop(self, command: planned.PlannedStop, record: VersionRecord) -> None:
        """A container that has been replaced."""
        drain = self.names.drain(command.container, record, command.reason)
        self._add(command, command.node, drain, f"{record.ref}: {command.container} drains: {command.reason}")

    def device(self, command: planned.PlannedCut | planned.PlannedMigSwitch) -> None:
        """A GPU that is cut, or changes its mode."""
        made: AgentCommand
        if isinstance(command, planned.PlannedCut):
            destroy, create = places(command.destroy), places(command.create)
            made = device_commands.Cut(epoch=self.names.epoch, device=command.gpu, destroy=destroy, create=create)
            what = f"{' '.join(map(str, create))} is cut" + (f", {' '.join(map(str, destroy))} goes" * bool(destroy))
        else:
            made = device_commands.SwitchMig(epoch=self.names.epoch, device=command.gpu, on=command.on)
            what = f"MIG mode {'on' if command.on else 'off'}"
        self._add(command, command.node, made, f"{command.node}/{command.gpu}: {what}")

    def _add(self, command: planned.PlannedCommand, node: str, made: AgentCommand, note: str) -> None:
        step = PlanStep(number=command.number, group=command.group, after=command.after, node=node, command=made)
        self.steps.append(step)
        self.notes.append(note)


def places(layout: Layout) -> tuple[MigPlacement, ...]:
    """Instances as they are called on the wire."""
    return tuple(MigPlacement(start=instance.start, profile=instance.profile) for instance in layout)
