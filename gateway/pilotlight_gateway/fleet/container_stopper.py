"""Asks the leading controller to end a container."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import Bus, BusDown, BusTimeout, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.controller_questions import ContainerStopReply, StopContainer

ANSWER_S = 5.0
"""Longer than the controller waits for the node."""


class ContainerStopper(Protocol):
    """Ends containers."""

    async def stop(self, asked: StopContainer) -> ContainerStopReply | None:
        """What its node does, or no node and "replacing"; None: there is no such container of that tenant.

        Raises:
            Unavailable: no controller leads, or the node does not answer.
        """
        ...


class BusStopper:
    """The `ContainerStopper` over the bus."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region

    async def stop(self, asked: StopContainer) -> ContainerStopReply | None:
        try:
            reply = await self._bus.request(subjects.stop_container(self._region), asked, ANSWER_S)
        except (BusDown, BusTimeout, NoResponders):
            reply = None
        if not isinstance(reply, ContainerStopReply):
            raise Unavailable(
                "No controller leads now, so no container can be ended.", code="starting", retry_after=2.0
            )
        if reply.reason == "silent":
            raise Unavailable(f"The node of {asked.container} does not answer.", code="starting", retry_after=2.0)
        return reply if reply.node or reply.reason == "replacing" else None


@dataclass(kw_only=True)
class MemoryStopper:
    """An in-memory `ContainerStopper`, which ends what stands in `tenants` (container -> tenant)."""

    tenants: dict[str, str] = field(default_factory=dict)
    leads: bool = True
    """Whether a controller does."""
    asked: list[StopContainer] = field(default_factory=list)
    replacing: bool = False
    """Whether who is to be replaced first has no other in its place yet."""
    failing: bool = False
    """Whether others do not start."""

    async def stop(self, asked: StopContainer) -> ContainerStopReply | None:
        self.asked.append(asked)
        if not self.leads:
            raise Unavailable(
                "No controller leads now, so no container can be ended.", code="starting", retry_after=2.0
            )
        whose = self.tenants.get(asked.container)
        if whose is None or asked.tenant not in ("", whose):
            return None
        if asked.replace_first and self.replacing:
            return ContainerStopReply(reason="replacing", failing=self.failing)
        return ContainerStopReply(node="n1", within_ms=30_000.0 if asked.within_ms is None else asked.within_ms)
