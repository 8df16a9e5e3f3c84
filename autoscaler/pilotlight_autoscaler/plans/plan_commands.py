"""Conversion of a plan's commands to commands for agents, with container ids, versions and names of slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pilotlight_autoscaler.plans.plan_execution import AgentCommand, PlanStep
from pilotlight_autoscaler.policy.tenant_rooms import LimitsOf, unlimited
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Bind, Drain, Stop
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.networks.network_targets import given_targets
from pilotlight_core.model.spec import VersionRecord, network_of
from pilotlight_placement.fleet.reports import name_of
from pilotlight_placement.plan.commands import PlanCommand, PlannedCommand, PlannedStart

NetworkOf = Callable[[str], tuple[str, ...]]
"""By tenant: what its functions may be given of what they ask for by `network=`."""


def no_network(_: str) -> tuple[str, ...]:
    """Nothing for anybody: a `NetworkOf`."""
    return ()


@dataclass(frozen=True, kw_only=True)
class CommandContext:
    """The leader's data that a plan lacks."""

    epoch: int
    new_id: Callable[[VersionRecord], str]
    drain: Callable[[str, VersionRecord, str], Drain]
    """A container's drain, from its id, its version, and the reason."""
    limits_of: LimitsOf = unlimited
    network_of: NetworkOf = no_network


@dataclass(kw_only=True)
class AgentSteps:
    """The commands of one plan for agents, in the plan's order."""

    context: CommandContext
    steps: list[PlanStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def start(self, planned: PlanCommand, start: PlannedStart, record: VersionRecord, purpose: Purpose) -> str:
        """Add the start of a container of a version; the container's id."""
        container = self.context.new_id(record)
        slice_ = name_of(start.held.slice, container)
        bind = Bind(
            epoch=self.context.epoch,
            container=container,
            version=record.id,
            tenant=record.tenant,
            manifest_sha256=record.manifest_sha256,
            function=start.held.function,
            slice=slice_,
            neighbours=record.spec.placing.neighbours,
            host=start.held.host,
            log_bytes_per_hour=self.context.limits_of(record.tenant).log_bytes_per_hour,
            purpose=purpose,
            evidence=record.evidence,
            network=given_targets(network_of(record.spec), self.context.network_of(record.tenant)),
        )
        why = f", in place of {start.replaces}" if start.replaces else ""
        self._add(planned, bind, f"{record.ref}: {container} on {planned.node}/{slice_}{why}")
        return container

    def stop(self, planned: PlanCommand, stop: Stop, record: VersionRecord | None) -> None:
        """Add the drain of a container, bounded by the duration of its version's calls.

        `record`: its version; None: it is parked, and ends at once.
        """
        if record is None:
            self._add(planned, stop, f"{stop.container}, which is parked, ends: {stop.reason}")
            return
        drain = self.context.drain(stop.container, record, stop.reason)
        self._add(planned, drain, f"{record.ref}: {stop.container} drains: {stop.reason}")

    def change_device(self, planned: PlanCommand, command: Cut | SwitchMig) -> None:
        what = f"MIG mode {'on' if command.on else 'off'}" if isinstance(command, SwitchMig) else _cut_text(command)
        self._add(planned, command, f"{planned.node}/{command.device}: {what}")

    def _add(self, planned: PlannedCommand[object], command: AgentCommand, note: str) -> None:
        self.steps.append(
            PlannedCommand(
                number=planned.number, group=planned.group, after=planned.after, node=planned.node, command=command
            )
        )
        self.notes.append(note)


def _cut_text(cut: Cut) -> str:
    gone = f", {' '.join(map(str, cut.destroy))} goes" if cut.destroy else ""
    return f"{' '.join(map(str, cut.create))} is cut{gone}"
