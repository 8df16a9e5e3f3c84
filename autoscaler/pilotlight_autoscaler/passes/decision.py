"""What a pass decides: commands for agents, plans, shortages, and notes for people."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotlight_autoscaler.plans.plan_execution import AgentCommand, PlanStep
from pilotlight_core.model.messages.node_messages import Keep, Park, Shortage, Unpark


@dataclass(frozen=True, kw_only=True)
class AddressedCommand:
    node: str
    command: AgentCommand | Keep | Park | Unpark


@dataclass(kw_only=True)
class Decision:
    """The commands of one pass, and notes for people."""

    commands: list[AddressedCommand] = field(default_factory=list)
    executions: list[list[PlanStep]] = field(default_factory=list)
    """Plans with commands that wait for others."""
    shortages: list[Shortage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
