"""Asks the leading controller for the reasons of placements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import Bus, BusDown, BusTimeout, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.explaining import ExplainPlacement, PlacementReply

ANSWER_S = 5.0
"""Long enough to rebuild a past fleet."""


class Explainer(Protocol):
    """Explains placements."""

    async def explain(self, asked: ExplainPlacement) -> PlacementReply:
        """The controller's explanation.

        Raises:
            Unavailable: no controller leads.
        """
        ...


class BusExplainer:
    """The `Explainer` over the bus."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region

    async def explain(self, asked: ExplainPlacement) -> PlacementReply:
        try:
            reply = await self._bus.request(subjects.explain(self._region), asked, ANSWER_S)
        except (BusDown, BusTimeout, NoResponders):
            reply = None
        if not isinstance(reply, PlacementReply):
            raise Unavailable(
                "No controller leads now, so no placement can be explained.", code="starting", retry_after=2.0
            )
        return reply


NOTHING = PlacementReply(found=False, lines=("Nothing was decided yet.",))


@dataclass(kw_only=True)
class MemoryExplainer:
    """An in-memory `Explainer`; without `reply` no controller leads."""

    reply: PlacementReply | None = NOTHING
    asked: list[ExplainPlacement] = field(default_factory=list)

    async def explain(self, asked: ExplainPlacement) -> PlacementReply:
        self.asked.append(asked)
        if self.reply is None:
            raise Unavailable(
                "No controller leads now, so no placement can be explained.", code="starting", retry_after=2.0
            )
        return self.reply
